#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>

#include <fmt/format.h>
#include <png.h>

#include "actors/data/internal/image.hpp"

namespace troupe::train::internal {
namespace {

/// One bit a pixel, and DEFLATE packs at most 1032 to 1 (zlib's manual).
constexpr std::uint64_t kPixelsPerByte = std::uint64_t{8} * 1032;
/// Of a chunk that is no pixels, such as a text.
constexpr png_alloc_size_t kMostChunkBytes = png_alloc_size_t{8} << 20;
constexpr int kMostChunks = 1000;

/// libpng's state. It reports errors by a jump, over no object that has a destructor: every call
/// into it is in a method of its own, which returns false where it jumped to.
class Decoder {
public:
  Decoder(std::span<const std::byte> bytes) : left_(bytes) {}
  ~Decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  bool create() {
    png_ = png_create_read_struct(
        PNG_LIBPNG_VER_STRING, this,
        [](png_structp png, png_const_charp what) {
          static_cast<Decoder*>(png_get_error_ptr(png))->give_up(what);
        },
        [](png_structp, png_const_charp) {});
    if (png_ == nullptr) return false;
    info_ = png_create_info_struct(png_);
    return info_ != nullptr;
  }

  bool read_header() {
    if (setjmp(jump_) != 0) return false;
    png_set_read_fn(png_, this, [](png_structp png, png_bytep out, std::size_t size) {
      auto& left = static_cast<Decoder*>(png_get_io_ptr(png))->left_;
      if (left.size() < size) png_error(png, "it is cut off");
      std::memcpy(out, left.data(), size);
      left = left.subspan(size);
    });
    png_set_chunk_malloc_max(png_, kMostChunkBytes);
    png_set_chunk_cache_max(png_, kMostChunks);
    // Other sizes are refused by whoever asks for the header.
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_read_info(png_, info_);
    return true;
  }

  /// To rows of RGB bytes.
  bool start() {
    if (setjmp(jump_) != 0) return false;
    png_set_expand(png_);
    png_set_scale_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return png_get_rowbytes(png_, info_) == std::size_t{3} * width();
  }

  bool read_rows(unsigned char* pixels) {
    if (setjmp(jump_) != 0) return false;
    for (int pass = 0; pass < passes_; ++pass)
      for (std::size_t y = 0; y < height(); ++y)
        png_read_row(png_, pixels + y * width() * 3, nullptr);
    png_read_end(png_, nullptr);
    return true;
  }

  std::uint32_t width() const { return png_get_image_width(png_, info_); }
  std::uint32_t height() const { return png_get_image_height(png_, info_); }
  /// What was wrong, after false.
  const char* problem() const { return problem_.data(); }

private:
  [[noreturn]] void give_up(const char* what) {
    const std::size_t length = std::min(std::strlen(what), problem_.size() - 1);
    std::memcpy(problem_.data(), what, length);
    problem_[length] = '\0';
    std::longjmp(jump_, 1);
  }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::span<const std::byte> left_;
  std::jmp_buf jump_{};
  std::array<char, 200> problem_{};
  int passes_ = 1;
};

}  // namespace

Result<Image> decode_png(std::span<const std::byte> bytes, std::string_view name,
                         const ImageLimits& limits) {
  Decoder decoder(bytes);
  const auto damaged = [&] {
    return damaged_image(name, fmt::format("the PNG is damaged: {}", decoder.problem()));
  };
  if (!decoder.create())
    return Error{Code::resource_exhausted, fmt::format("no memory to decode {}", name)};
  if (!decoder.read_header()) return damaged();
  Image image{decoder.width(), decoder.height(), {}};
  TROUPE_TRY(
      check_image_size(image.width, image.height, bytes.size(), kPixelsPerByte, name, limits));
  TROUPE_TRY(allocate_pixels(image, name));
  if (!decoder.start() || !decoder.read_rows(image.pixels.data())) return damaged();
  return image;
}

}  // namespace troupe::train::internal
