#include "sys/remove_below.h"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "sys/descriptor.h"

namespace trainyard::sys {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

/// The names of what is in a directory, read to the end before anything of it is deleted.
std::vector<std::string> names_below(const Descriptor& directory) {
  std::vector<std::string> names;
  // The stream has a descriptor of its own, which it closes.
  const int own = ::openat(directory.get(), ".", kDirectory);
  const std::unique_ptr<DIR, CloseDirectory> stream(own < 0 ? nullptr : ::fdopendir(own));
  if (!stream) {
    if (own >= 0) ::close(own);
    return names;
  }
  while (const dirent* const entry = ::readdir(stream.get())) {
    const std::string_view name = static_cast<const char*>(entry->d_name);
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

class BelowRemover {
 public:
  explicit BelowRemover(const Removal& removal) : removal_(removal) {}

  Removed remove() {
    const Descriptor directory = open();
    struct stat about{};
    if (directory.is_open() && ::fstat(directory.get(), &about) == 0) {
      file_system_ = about.st_dev;
      const std::string path = removal_.root + "/" + removal_.directory;
      for (const std::string& name : names_below(directory)) {
        if (!removal_.kept || !removal_.kept(name)) remove(directory, name, path + "/" + name);
      }
    }
    return std::move(removed_);
  }

 private:
  /// Part by part, as what a part of it leads to may have been changed to a link.
  Descriptor open() {
    const char* const root = removal_.is_working_directory ? "." : removal_.root.c_str();
    Descriptor at(::open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!at.is_open()) return failed_to_open(removal_.root);
    std::string path = removal_.root;
    for (const std::filesystem::path& part : std::filesystem::path(removal_.directory)) {
      path += "/" + part.string();
      if (part == "..") return failed_to_open(path, EINVAL);
      at = Descriptor(::openat(at.get(), part.c_str(), kDirectory));
      if (!at.is_open()) return failed_to_open(path);
    }
    return at;
  }

  Descriptor failed_to_open(const std::string& path, int why = errno) {
    // A link is no directory of the run.
    if (why != ENOENT && why != ENOTDIR && why != ELOOP) failed(path, error_text(why));
    return {};
  }

  void failed(const std::string& path, std::string_view why) {
    if (removed_.failed.size() >= Removed::kFailedMax) return;
    removed_.failed.push_back(fmt::format("'{}': {}", path, why));
  }

  void remove(const Descriptor& in, const std::string& name, const std::string& path) {
    struct stat about{};
    if (::fstatat(in.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno != ENOENT) failed(path, error_text(errno));
      return;
    }
    if (S_ISDIR(about.st_mode)) return remove_directory(in, name, path);
    if (!removal_.only_look && ::unlinkat(in.get(), name.c_str(), 0) != 0) {
      if (errno != ENOENT) failed(path, error_text(errno));
      return;
    }
    ++removed_.entries;
    // A file with several names counts with its last name.
    const bool counts = S_ISREG(about.st_mode) && (removal_.only_look || about.st_nlink == 1);
    if (counts) removed_.bytes += Bytes{static_cast<std::int64_t>(about.st_size)};
  }

  void remove_directory(const Descriptor& in, const std::string& name, const std::string& path) {
    {
      const Descriptor directory(::openat(in.get(), name.c_str(), kDirectory));
      struct stat about{};
      if (!directory.is_open() || ::fstat(directory.get(), &about) != 0) {
        return failed(path, error_text(errno));
      }
      // A file system is mounted there: its content is elsewhere.
      if (about.st_dev != file_system_) return failed(path, "it is another file system");
      for (const std::string& below : names_below(directory)) {
        remove(directory, below, path + "/" + below);
      }
    }
    if (removal_.only_look || ::unlinkat(in.get(), name.c_str(), AT_REMOVEDIR) == 0) {
      ++removed_.entries;
      return;
    }
    // Why it is not empty has been said.
    if (errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST) failed(path, error_text(errno));
  }

  const Removal& removal_;
  dev_t file_system_ = 0;
  Removed removed_;
};

}  // namespace

Removed remove_below(const Removal& removal) { return BelowRemover(removal).remove(); }

}  // namespace trainyard::sys
