// Nothing is left of a group, however often there was one, and however its parent went.
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <ostream>
#include <string>
#include <system_error>
#include <vector>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/time.h"
#include "ranks/test_components.h"
#include "ranks/test_options.h"
#include "sys/descriptor.h"
#include "sys/passing.h"
#include "sys/pidfd.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"
#include "trainyard/component.h"
#include "trainyard/rank_context.h"
#include "trainyard/rank_executor.h"
#include "trainyard/return_code.h"
#include "trainyard/shareable.h"

namespace trainyard::ranks {
namespace {

/// Things that can be left: descriptors, threads, children, directories of sockets and logs.
struct Possessions {
  std::vector<std::string> descriptors;
  std::ptrdiff_t threads = 0;
  std::vector<std::string> directories;
  bool children = false;

  friend bool operator==(const Possessions&, const Possessions&) = default;
  // NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name.
  friend void PrintTo(const Possessions& it, std::ostream* out) {
    *out << testing::PrintToString(it.descriptors) << ", " << it.threads << " threads, "
         << testing::PrintToString(it.directories) << (it.children ? ", children" : "");
  }
};

/// A directory in which no other program makes sockets and logs, while it lives.
class OwnPlace {
 public:
  OwnPlace() {
    ::setenv("XDG_RUNTIME_DIR", directory_.path().c_str(), 1);
    ::setenv("TMPDIR", directory_.path().c_str(), 1);
  }
  OwnPlace(OwnPlace&&) = delete;
  OwnPlace& operator=(OwnPlace&&) = delete;
  ~OwnPlace() {
    ::unsetenv("XDG_RUNTIME_DIR");
    ::unsetenv("TMPDIR");
  }
  [[nodiscard]] const std::string& path() const { return directory_.path(); }

 private:
  sys::TemporaryDirectory directory_;
};

Possessions possessions(const OwnPlace& place) {
  namespace fs = std::filesystem;
  Possessions found;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    found.descriptors.push_back(fs::read_symlink(entry.path(), error).string());
  }
  found.threads =
      std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
  for (const auto& entry : fs::directory_iterator(place.path())) {
    const std::string name = entry.path().filename();
    // The leases of ports are known to all yards of a user, and stay.
    if (name != "trainyard-ports") found.directories.push_back(name);
  }
  std::ranges::sort(found.descriptors);
  std::ranges::sort(found.directories);
  found.children = ::waitpid(-1, nullptr, WNOHANG) != -1;
  return found;
}

TEST(RankExecutorLeaves, NothingAfterAThousandLaunches) {
  const OwnPlace place;
  const Possessions before = possessions(place);
  for (int cycle = 0; cycle < 1'000; ++cycle) {
    RankExecutor executor(test_options(1), test_registry());
    RankContext context;
    const Shareable reply = executor.execute("get", {}, context);
    ASSERT_EQ(reply.code(), ReturnCode::Ok) << cycle << ": " << reply.message();
  }
  EXPECT_EQ(possessions(place), before);
}

TEST(RankExecutorLeaves, NothingOfSixtyFourRanks) {
  const OwnPlace place;
  const Possessions before = possessions(place);
  {
    RankExecutorOptions options = test_options(64);
    options.result = RankResult::Sum;
    RankExecutor executor(options, test_registry());
    RankContext context;
    Shareable task;
    task.set("count", 1'000);
    const Shareable reply = executor.execute("fill", task, context);
    ASSERT_EQ(reply.code(), ReturnCode::Ok) << reply.message();
    EXPECT_THAT(reply.buffer("filled")->as<float>(), testing::Each(64.0F * 65 / 2));
  }
  EXPECT_EQ(possessions(place), before);
}

TEST(RankExecutorLeaves, TheProgramAliveWhereTooFewFilesMayBeOpen) {
  for (rlim_t files = 3; files < 32; ++files) {
    const pid_t child = ::fork();
    if (child == 0) {
      const rlimit few{.rlim_cur = files, .rlim_max = files};
      ::setrlimit(RLIMIT_NOFILE, &few);
      RankExecutor executor(test_options(1), test_registry());
      RankContext context;
      ::_exit(executor.execute("get", {}, context).code() == ReturnCode::Ok ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << files << " files: " << status;
  }
}

TEST(RankExecutorLeaves, NoRankWhenTheParentIsKilled) {
  // A parent of its own, which says who its ranks are and then waits to be killed.
  auto ends = sys::socket_pair().value();
  const pid_t parent = ::fork();
  if (parent == 0) {
    RankExecutor executor(test_options(2), test_registry());
    executor.on_event([&](const RankEvent& event, RankContext&) {
      const auto pid = event.data.at("pid").get<pid_t>();
      static_cast<void>(::send(ends.second.get(), &pid, sizeof pid, 0));
    });
    RankContext context;
    static_cast<void>(executor.execute("pid_and_hang", {}, context));
    ::_exit(1);
  }
  std::vector<sys::Descriptor> ranks;
  for (int i = 0; i < 2; ++i) {
    pid_t pid = 0;
    ASSERT_EQ(::recv(ends.first.get(), &pid, sizeof pid, MSG_WAITALL),
              static_cast<ssize_t>(sizeof pid));
    ranks.push_back(sys::open_pidfd(pid));
    ASSERT_TRUE(ranks.back().is_open());
  }
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  for (const sys::Descriptor& rank : ranks) {
    EXPECT_TRUE(sys::wait_until_ended(rank, sys::kLongEnough));
  }
}

}  // namespace
}  // namespace trainyard::ranks
