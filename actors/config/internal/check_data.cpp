#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "actors/config/internal/key_table.hpp"

namespace troupe::train::internal {
namespace {

/// What a format takes of the table [data].
struct Format {
  std::string_view name;
  bool four_files = false;  ///< train_images, train_labels, test_images, test_labels
  bool train_and_test = false;
  bool image_size = false;
  bool tokens = false;
  bool augments = false;
  std::size_t channels = 0;  ///< 0: there are no pixels
};

constexpr std::array<Format, 7> kFormats = {{
    {.name = "idx", .four_files = true, .channels = 1},
    {.name = "cifar10", .augments = true, .channels = 3},
    {.name = "cifar100", .augments = true, .channels = 3},
    {.name = "images", .train_and_test = true, .image_size = true, .augments = true, .channels = 3},
    {.name = "tar", .train_and_test = true, .image_size = true, .augments = true, .channels = 3},
    {.name = "tokens", .train_and_test = true, .tokens = true},
    {.name = "text", .train_and_test = true, .tokens = true},
}};

/// A key that the format needs, or one that it has no use for.
std::optional<Problem> check_use(std::string_view key, bool wanted, bool given,
                                 const DataConfig& data, std::string_view what) {
  if (wanted == given) return std::nullopt;
  if (wanted)
    return Problem{key,
                   fmt::format("but data.format \"{}\" needs it: it must {}", data.format, what)};
  return Problem{
      key, fmt::format("but data.format \"{}\" has no use for it; remove the key", data.format)};
}

std::optional<Problem> check_paths(const DataConfig& data, const Format& format) {
  if (!format.four_files && !format.train_and_test && data.directory.empty())
    return check_use("data.directory", true, false, data,
                     "name the folder that the data set was unpacked to");
  for (const auto& [key, value] : {std::pair{"data.train", &data.train}, {"data.test", &data.test}})
    if (auto found = check_use(key, format.train_and_test, !value->empty(), data,
                               format.tokens ? "name a file" : "name a folder"))
      return found;
  for (const auto& [key, value] : {std::pair{"data.train_images", &data.train_images},
                                   {"data.train_labels", &data.train_labels},
                                   {"data.test_images", &data.test_images},
                                   {"data.test_labels", &data.test_labels}})
    if (auto found = check_use(key, format.four_files, !value->empty(), data, "name a file"))
      return found;
  return std::nullopt;
}

std::optional<Problem> check_pixels(const DataConfig& data, const Format& format) {
  for (const auto& [key, values, none] :
       {std::tuple{"data.mean", &data.mean, 0.0}, std::tuple{"data.std", &data.std, 1.0}}) {
    if (format.channels == 0 && *values != std::vector<double>{none})
      return check_use(key, false, true, data, "");
    if (values->size() != 1 && values->size() != format.channels)
      return Problem{key, fmt::format("but images of data.format \"{}\" have {} channel{}; give "
                                      "one number{}",
                                      data.format, format.channels, format.channels == 1 ? "" : "s",
                                      format.channels == 1 ? "" : ", or one for each")};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Problem> check_data(const JobConfig& config) {
  const DataConfig& data = config.data;
  const auto* const format = std::find_if(kFormats.begin(), kFormats.end(),
                                          [&](const Format& x) { return x.name == data.format; });
  if (format == kFormats.end()) return Problem{"data.format", "but there is no such format"};
  if (auto found = check_paths(data, *format)) return found;
  if (auto found = check_use("data.image_size", format->image_size, data.image_size != 0, data,
                             "be the height and width that images are cut to"))
    return found;
  if (auto found = check_use("data.tokens", format->tokens, data.tokens != 0, data,
                             "be the number of tokens of a sample"))
    return found;
  if (!format->augments && data.augment != "none")
    return check_use("data.augment", false, true, data, "");
  if (data.format != "tokens" && data.token_type != "u16")
    return check_use("data.token_type", false, true, data, "");
  if (data.format == "text" && config.model.classes < 256)
    return Problem{"model.classes",
                   "but the tokens of data.format \"text\" are bytes; set it to 256"};
  return check_pixels(data, *format);
}

}  // namespace troupe::train::internal
