#include "library/result_file.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include "sys/files.h"
#include "sys/open_file.h"

namespace trainyard::library {
namespace {

/// The smallest page of any machine: what is within one of this size is within one of theirs.
constexpr std::size_t kPage = 4'096;

}  // namespace

Result<void> ResultFile::replace(std::string_view text) {
  file_.close();
  Result<void> written = sys::replace_file(path_, text);
  // A member comes behind another one.
  const bool has_members = text.starts_with('{') && text.ends_with('}') && text.size() > 2;
  if (!written || !has_members) return written;
  if (auto opened = sys::open_file(path_, {.flags = O_WRONLY})) {
    file_ = std::move(opened->descriptor);
    facts_ = opened->facts;
    size_ = text.size();
  }
  return written;
}

bool ResultFile::add(std::string_view object) {
  if (!file_.is_open() || object.size() <= 2) return false;
  // In the place of the last brace: ,"key":1}
  std::string member(object);
  member.front() = ',';
  const std::size_t at = size_ - 1;
  const std::size_t last = at + member.size() - 1;
  // The kernel writes what is within a page as one, and looks for signals between pages.
  if (at / kPage != last / kPage || !is_as_it_was()) return false;
  const ssize_t put = ::pwrite(file_.get(), member.data(), member.size(), static_cast<off_t>(at));
  if (put == static_cast<ssize_t>(member.size())) {
    size_ = last + 1;
    return true;
  }
  // The disk is full: its blocks may be smaller than a page.
  if (put > 0 && (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0 ||
                  ::pwrite(file_.get(), "}", 1, static_cast<off_t>(at)) != 1)) {
    file_.close();
  }
  return false;
}

/// No other file has taken its place, and nobody has written to it.
bool ResultFile::is_as_it_was() const {
  struct stat now{};
  return ::lstat(path_.c_str(), &now) == 0 && now.st_dev == facts_.st_dev &&
         now.st_ino == facts_.st_ino && now.st_size == static_cast<off_t>(size_);
}

}  // namespace trainyard::library
