#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <zlib.h>

#include "runtime/base/check.hpp"
#include "tests/actors/data/data_files.hpp"

namespace troupe::train {

/// An IDX file's first bytes.
inline std::string idx_header(const std::vector<std::uint32_t>& shape, char type = 8) {
  std::string header{0, 0, type, static_cast<char>(shape.size())};
  for (const std::uint32_t extent : shape)
    for (const int shift : {24, 16, 8, 0}) header += static_cast<char>(extent >> shift);
  return header;
}

/// `text` as a gzip member.
inline std::string gzipped(const std::string& text) {
  z_stream stream{};
  constexpr int kGzip = 16;
  TROUPE_CHECK(
      deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK,
      "deflateInit2");
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  TROUPE_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END, "deflate");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace troupe::train
