// The processes that a run left when it died, found by real ones with its mark.
#include <cstdlib>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/noted_ends.h"
#include "run/run_directory.h"
#include "sys/files.h"
#include "sys/stream_program.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(LeftProcesses, AreOfARunThatDiedOnThisHost) {
  const sys::TemporaryDirectory run;
  const std::string mark = mark_of(real_directory(run.path()));
  Result<sys::StreamProgram> task = sys::StreamProgram::start(
      {"env", mark, "sh", "-c", fmt::format("echo $$ > '{}'; exec sleep 1000", run / "pid")});
  ASSERT_TRUE(task.has_value()) << task.error().message;
  ASSERT_TRUE(sys::eventually([&run] { return sys::content_of(run / "pid").ends_with('\n'); }));
  const std::int64_t pid = std::strtoll(sys::content_of(run / "pid").c_str(), nullptr, 10);
  const journal::ExecutionRow died{.host = sys::host_name()};
  EXPECT_THAT(processes_left(run.path(), died), ElementsAre(pid));
  EXPECT_THAT(processes_left(run.path() + "/.", died), ElementsAre(pid)) << "by another name";
  EXPECT_THAT(processes_left(run.path() + "-2", died), IsEmpty()) << "another run";
  EXPECT_THAT(processes_left(run.path(), {.host = died.host + "-2"}), IsEmpty());
  const journal::ExecutionRow ended{.host = died.host, .ended = Instant{}};
  EXPECT_THAT(processes_left(run.path(), ended), IsEmpty());
}

}  // namespace
}  // namespace trainyard::run
