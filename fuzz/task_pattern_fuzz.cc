// What somebody types for the tasks that are meant.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "text/task_pattern.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using trainyard::check;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto pattern = trainyard::text::TaskPattern::read(text);
  if (!pattern) {
    check(!pattern.error().message.empty(), "a mistake says what is wrong");
    return 0;
  }
  check(pattern->text() == text, "a pattern is what was written");
  const std::array<std::pair<std::string, std::string>, 2> keys{{{"lr", "0.001"}, {"seed", "0"}}};
  const trainyard::text::TaskNames task{
      .group = "train", .group_in_file = "train", .id = "lr=0.001,seed=0", .keys = keys};
  const trainyard::text::TaskChoice choice({*pattern},
                                           [&task](const auto& look_at) { look_at(task); });
  check(choice.chosen().front() == (pattern->names(task) || pattern->covers(task)),
        "a task is chosen that is named or covered");
  return 0;
}
