// What yards and agents say to each other, as whoever is at the other end may have written it: what
// is read is written so that it is read again as the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "wire/agent.h"

using trainyard::check;

namespace {

template <class Read>
void try_line(std::string_view line, Read read) {
  const auto said = read(line);
  if (!said) return;
  const std::string written = trainyard::wire::to_line(*said);
  check(!written.contains('\n'), "one line");
  const auto again = read(written);
  check(again.has_value(), "a line again");
  check(trainyard::wire::to_line(*again) == written, "the same line again");
  // One that holds what is no number differs from itself.
  check(written.contains(R"("nan")") || *again == *said, "the same again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  try_line(line, trainyard::wire::yard_says);
  try_line(line, trainyard::wire::agent_says);
  static_cast<void>(trainyard::wire::is_agents_first(line));
  return 0;
}
