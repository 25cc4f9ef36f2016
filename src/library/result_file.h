// The file in which a task leaves its result, the text of a JSON object: replaced as a whole, or
// extended by a member at the cost of that member.
//
// When this process is killed, at any instant, the file contains the object before a change or
// after it. A process that reads it while a member is added may find neither. One thread at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <sys/stat.h>

#include "base/result.h"
#include "sys/descriptor.h"

namespace trainyard::library {

class ResultFile {
 public:
  explicit ResultFile(std::string path) : path_(std::move(path)) {}

  /// Puts `text` in the place of whatever is there.
  Result<void> replace(std::string_view text);

  /// Adds a member that the object has not: `object` is the text of an object with this member
  /// alone. False: the file is as it was, and its object must be replaced to have the member. That
  /// is so about once a page, and where the file is not as replace() and add() have left it.
  bool add(std::string_view object);

 private:
  [[nodiscard]] bool is_as_it_was() const;

  std::string path_;
  sys::Descriptor file_;  ///< Closed: there is no object to which a member could be added.
  struct stat facts_{};   ///< Of the file, when it was replaced.
  std::size_t size_ = 0;
};

}  // namespace trainyard::library
