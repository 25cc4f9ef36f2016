// Whatever stands in a file of a queue.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "queue/queue_files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace queue = trainyard::queue;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto read = queue::submission_from(text)) {
    trainyard::check(queue::submission_from(queue::to_text(*read)) == *read,
                     "what was read is written so that it is read again");
  }
  if (const auto read = queue::ended_from(text)) {
    trainyard::check(queue::ended_from(queue::to_text(*read)) == *read, "and what has ended too");
  }
  return 0;
}
