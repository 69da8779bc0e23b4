#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>  // jpeglib.h wants FILE

#include <fmt/format.h>
#include <jerror.h>
#include <jpeglib.h>

#include "actors/data/internal/image.hpp"

namespace troupe::train::internal {
namespace {

/// Passes over a progressive image; each costs the time of a whole one.
constexpr int kMostScans = 200;
/// With the shortest codes, an entry of a bit for each 8 by 8 block: six blocks for 16 by 16 pixels
/// whose colours are halved both ways.
constexpr std::uint64_t kPixelsPerByte = 512;

/// libjpeg's state. It reports errors by a jump, over no object that has a destructor: every call
/// into it is in a method of its own, which returns false where it jumped to.
class Decoder {
public:
  Decoder() {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr info) { of(info).give_up(info); };
    errors_.emit_message = [](j_common_ptr info, int level) {
      if (level < 0 && !is_harmless(info->err->msg_code)) of(info).give_up(info);
    };
    errors_.output_message = [](j_common_ptr) {};
    progress_.progress_monitor = [](j_common_ptr info) {
      if (info->is_decompressor &&
          reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kMostScans)
        ERREXIT(info, JERR_BAD_PROGRESSION);
    };
    info_.client_data = this;
  }
  ~Decoder() {
    if (created_) jpeg_destroy_decompress(&info_);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  bool read_header(const unsigned char* bytes, std::size_t size) {
    if (setjmp(jump_) != 0) return false;
    jpeg_create_decompress(&info_);
    created_ = true;
    info_.client_data = this;  // it was cleared
    info_.progress = &progress_;
    jpeg_mem_src(&info_, bytes, static_cast<unsigned long>(size));
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  bool start() {
    if (setjmp(jump_) != 0) return false;
    const bool inks = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = inks ? JCS_CMYK : JCS_RGB;
    // What gives the same bytes with and without vector instructions.
    info_.dct_method = JDCT_ISLOW;
    info_.do_fancy_upsampling = TRUE;
    jpeg_start_decompress(&info_);
    return true;
  }

  bool read_row(unsigned char* row) {
    if (setjmp(jump_) != 0) return false;
    JSAMPROW rows[] = {row};
    return jpeg_read_scanlines(&info_, rows, 1) == 1;
  }

  bool finish() {
    if (setjmp(jump_) != 0) return false;
    jpeg_finish_decompress(&info_);
    return true;
  }

  const jpeg_decompress_struct& info() const { return info_; }
  /// What was wrong, after false.
  const char* problem() const { return problem_.data(); }

private:
  static Decoder& of(j_common_ptr info) { return *static_cast<Decoder*>(info->client_data); }

  /// Warnings about what does not change a pixel; all others mean that some were made up.
  static bool is_harmless(int code) {
    return code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR ||
           code == JWRN_TOO_MUCH_DATA;
  }

  [[noreturn]] void give_up(j_common_ptr info) {
    info->err->format_message(info, problem_.data());
    std::longjmp(jump_, 1);
  }

  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf jump_{};
  std::array<char, JMSG_LENGTH_MAX> problem_{};
  bool created_ = false;
};

/// Inks to light. Adobe's files have them inverted.
void to_rgb(const std::vector<std::uint8_t>& inks, bool inverted, std::uint8_t* rgb) {
  const auto light = [&](std::uint8_t ink) { return inverted ? ink : 255 - ink; };
  for (std::size_t at = 0; at + 4 <= inks.size(); at += 4, rgb += 3)
    for (std::size_t i = 0; i < 3; ++i)
      rgb[i] = static_cast<std::uint8_t>((light(inks[at + i]) * light(inks[at + 3]) + 127) / 255);
}

}  // namespace

Result<Image> decode_jpeg(std::span<const std::byte> bytes, std::string_view name,
                          const ImageLimits& limits) {
  Decoder decoder;
  const auto damaged = [&] {
    return damaged_image(name, fmt::format("the JPEG is damaged: {}", decoder.problem()));
  };
  if (!decoder.read_header(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()))
    return damaged();
  const auto& info = decoder.info();
  if (info.arith_code) return damaged_image(name, "it is a JPEG with arithmetic coding");
  Image image{info.image_width, info.image_height, {}};
  TROUPE_TRY(
      check_image_size(image.width, image.height, bytes.size(), kPixelsPerByte, name, limits));
  TROUPE_TRY(allocate_pixels(image, name));
  if (!decoder.start()) return damaged();
  const bool inks = info.out_color_space == JCS_CMYK;
  std::vector<std::uint8_t> row(inks ? std::size_t{image.width} * 4 : 0);
  for (std::size_t y = 0; y < image.height; ++y) {
    std::uint8_t* const out = image.pixels.data() + y * image.width * 3;
    if (!decoder.read_row(inks ? row.data() : out)) return damaged();
    if (inks) to_rgb(row, info.saw_Adobe_marker, out);
  }
  if (!decoder.finish()) return damaged();
  return image;
}

}  // namespace troupe::train::internal
