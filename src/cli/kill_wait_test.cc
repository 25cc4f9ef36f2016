#include "cli/kill_wait.h"

#include <utility>

#include <gtest/gtest.h>

#include "link/control_client.h"

namespace trainyard::cli {
namespace {

journal::TaskRow running(std::string id, Duration signal_before_term) {
  journal::TaskRow row;
  row.group_name = "train";
  row.id = std::move(id);
  row.pid = 7;
  row.signal_before_term = signal_before_term;
  return row;
}

journal::TaskRow waiting(std::string id, Duration signal_before_term) {
  journal::TaskRow row = running(std::move(id), signal_before_term);
  row.pid = 0;
  return row;
}

TEST(KillWait, IsLongerByTheLongestTimeThatATaskHasBeforeTerm) {
  EXPECT_EQ(kill_wait_max({running("a", Duration{0})}), Duration{30'000});
  EXPECT_EQ(kill_wait_max({running("a", Duration{40'000}), running("b", Duration{1'000})}),
            Duration{70'000});
  EXPECT_EQ(kill_wait_max({waiting("a", Duration{40'000})}), Duration{70'000})
      << "the task may have started meanwhile";
}

TEST(KillWait, CountsOnceForEachGroupOfTasksThatIsAskedForAtOnce) {
  std::vector<journal::TaskRow> tasks(link::kAskedAtOnce, running("a", Duration{40'000}));
  EXPECT_EQ(kill_wait_max(tasks), Duration{70'000});
  tasks.push_back(running("b", Duration{0}));
  EXPECT_EQ(kill_wait_max(tasks), Duration{140'000});
}

TEST(KillWait, NoteNamesTheTimeOfRunningTasksWithASignal) {
  EXPECT_EQ(kill_wait_note({running("a", Duration{0}), waiting("b", Duration{40'000})}), "");
  EXPECT_EQ(kill_wait_note({running("a", Duration{0}), running("s=1", Duration{40'000})}),
            "train/s=1 has up to 40 s to save its state before SIGTERM; Ctrl-C stops only the "
            "waiting");
  EXPECT_EQ(kill_wait_note({running("a", Duration{90'000}), running("b", Duration{1'000})}),
            "2 tasks have up to 1m30s to save their state before SIGTERM; Ctrl-C stops only the "
            "waiting");
}

}  // namespace
}  // namespace trainyard::cli
