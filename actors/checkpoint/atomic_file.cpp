#include "actors/checkpoint/atomic_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace troupe::train {
namespace {

using std::filesystem::path;

// ".<name>.<process>-<n>.troupe-tmp": hidden, and nobody else's.
constexpr std::string_view kSuffix = ".troupe-tmp";
constexpr int kMaxAttempts = 1000;

struct Temporary {
  path name;
  std::unique_ptr<WritableFile> file;
};

Result<Temporary> create_temporary(FileSystem& files, const path& file) {
  for (int n = 0; n < kMaxAttempts; ++n) {
    const path name = file.parent_path() /
                      fmt::format(".{}.{}-{}{}", file.filename().native(), ::getpid(), n, kSuffix);
    auto created = files.create(name);
    if (created.ok()) return Temporary{name, std::move(*created)};
    if (created.code() != Code::already_exists) return std::move(created).error();
  }
  return Error{Code::io_error, fmt::format("{} temporary files of {} are left over; remove "
                                           "those that end in {}",
                                           kMaxAttempts, file.native(), kSuffix)};
}

Status fill(WritableFile& file, std::span<const std::span<const std::byte>> parts) {
  for (const auto& part : parts) TROUPE_TRY(file.write(part));
  TROUPE_TRY(file.sync());
  return file.close();
}

}  // namespace

Status write_atomically(FileSystem& files, const path& file,
                        std::span<const std::span<const std::byte>> parts) {
  TROUPE_ASSIGN(Temporary temporary, create_temporary(files, file));
  Status status = fill(*temporary.file, parts);
  if (status.ok()) status = files.rename(temporary.name, file);
  if (!status.ok()) {
    temporary.file.reset();
    (void)files.remove(temporary.name);  // the first error is the one to tell
    return status;
  }
  const path folder = file.parent_path();
  return files.sync_directory(folder.empty() ? "." : folder);
}

Status remove_temporaries(FileSystem& files, const path& directory) {
  TROUPE_ASSIGN(const auto names, files.list(directory));
  for (const auto& name : names)
    if (name.starts_with('.') && name.ends_with(kSuffix))
      TROUPE_TRY(files.remove(directory / name));
  return {};
}

}  // namespace troupe::train
