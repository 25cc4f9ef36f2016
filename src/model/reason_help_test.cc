// The help against a reason to wait, as a command to run.
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "model/resources.h"
#include "model/waiting.h"

namespace trainyard::model {
namespace {

using Where = Help::Where;

Help of(Cause cause, const Request& needs, const Headroom& room) {
  return help_for({.cause = cause, .needs = needs}, room, 1);
}

Help resume(const char* line) { return {.where = Where::Resume, .line = line}; }
Help job_file(const char* line) { return {.where = Where::JobFile, .line = line}; }
Help shell(const char* line) { return {.where = Where::Shell, .line = line}; }

TEST(Help, IsTheSettingThatHolds) {
  EXPECT_EQ(of(Cause::OthersUseCpu, {}, {}), resume("--set utilization-limit.cpu=100%"));
  EXPECT_EQ(of(Cause::Processes, {}, {.processes_max = 4}),
            resume("--set scheduler.max-process=0"));
  EXPECT_EQ(of(Cause::Ahead, {}, {.ahead = 3, .waiting_max = 3}),
            resume("--set scheduler.max-waiting=4"));
  EXPECT_EQ(help_for({.cause = Cause::Parallel, .parallel_max = 2}, {}, 1),
            job_file("max-parallel: 3"));
  EXPECT_EQ(of(Cause::TriedFirst, {}, {}), job_file("try-first: 0"));
}

TEST(Help, IsNoLimitOfTheCpusThatOthersUseWhereTheTaskLacksSomethingElseAsWell) {
  const Headroom room{.memory_free = gb(4),
                      .cpus = cpus(2),
                      .cpus_free = cpus(1),
                      .cpu_holders = 1,
                      .disk_free = gb(50),
                      .disk_promised = gb(40),
                      .disk_holders = 1};
  const Help limit = resume("--set utilization-limit.cpu=100%");
  const Request fits{.memory = gb(4), .cpus = cpus(1), .disk = gb(10)};
  EXPECT_EQ(of(Cause::OthersUseCpu, fits, room), limit);
  EXPECT_EQ(of(Cause::OthersUseCpu, {.disk = gb(20)}, {}), limit) << "no disk has been read yet";
  EXPECT_EQ(of(Cause::OthersUseCpu, {.cpus = cpus(2)}, room), Help{});
  EXPECT_EQ(of(Cause::OthersUseCpu, {.memory = gb(5)}, room), Help{});
  EXPECT_EQ(of(Cause::OthersUseCpu, {.disk = gb(11)}, room), Help{});
  EXPECT_EQ(help_for({.cause = Cause::OthersUseCpu, .needs = fits, .parallel_max = 1}, room, 1),
            Help{});
}

TEST(Help, IsToClearUpWhereNoTaskThatRunsHasTheDisk) {
  EXPECT_EQ(of(Cause::Disk, {.disk = gb(9)}, {.disk_free = gb(4)}),
            (Help{.where = Help::Where::Shell,
                  .line = "trainyard clean --older 30d --keep results --dry-run"}));
  EXPECT_EQ(of(Cause::Disk, {.disk = gb(9)}, {.disk_free = gb(4), .disk_holders = 1}), Help{});
}

TEST(Help, IsNothingWhereThereIsOnlyToWait) {
  for (const Cause cause :
       {Cause::None, Cause::Group, Cause::NotYet, Cause::Queued, Cause::KeeperSilent,
        Cause::StartsRefused, Cause::Cpus, Cause::Settling, Cause::Reserved, Cause::GivesWay}) {
    EXPECT_EQ(of(cause, {}, {}), Help{}) << to_text(cause);
  }
  EXPECT_EQ(of(Cause::Processes, {}, {.processes_max = 4, .processes_reason = "512 open files"}),
            Help{})
      << "no setting of ours lifts that";
  EXPECT_EQ(of(Cause::Ahead, {}, {.ahead = 1}), Help{});
  EXPECT_EQ(of(Cause::Memory, {.memory = gb(9)}, {.memory_free = gb(4), .holders = 1}), Help{})
      << "our own tasks have it";
}

TEST(Help, ShowsWhoHasWhatIsMissing) {
  EXPECT_EQ(of(Cause::Memory, {.memory = gb(9)}, {.memory_free = gb(4), .memory_of_others = gb(6)}),
            shell("ps -eo user,pid,rss,args --sort=-rss | head"));
  Headroom room{.gpus = {{.label = "0", .free = gb(4), .of_others = gb(6)}}};
  EXPECT_EQ(of(Cause::Gpus, {.gpus = 1, .gpu_memory = gb(9)}, room), shell("trainyard devices"));
  EXPECT_EQ(of(Cause::Gpus, {.gpus = 1, .gpu_memory = gb(20)}, room), Help{});
  EXPECT_EQ(of(Cause::Gpus, {.gpus = 1}, room), shell("trainyard devices"));
  room.gpus[0].present = false;
  EXPECT_EQ(of(Cause::GpusGone, {.gpus = 1}, room), shell("trainyard devices"));
}

TEST(Help, LiftsTheLimitOfAGpuThatHasRoom) {
  Headroom room{.gpus = {{.label = "0", .tasks = 2, .utilization = 800, .free = gb(9)}}};
  Request needs{.gpus = 1, .gpu_memory = gb(5), .sharing = {.max_per_gpu = 2}};
  EXPECT_EQ(of(Cause::Gpus, needs, room), job_file("max-per-gpu: 3"));
  Reason measured{.cause = Cause::Gpus, .needs = needs, .per_gpu_measured = true};
  EXPECT_EQ(help_for(measured, room, 1), Help{}) << "nobody wants less to get done";
  room.gpus[0].tasks_max = 2;
  EXPECT_EQ(of(Cause::Gpus, needs, room), job_file("max-per-gpu: 3")) << "all say the same";
  needs.sharing = {.max_per_gpu = 4};
  EXPECT_EQ(of(Cause::Gpus, needs, room), Help{}) << "it is for those that are there";
  room.gpus[0].tasks_max = 0;
  room.gpu_utilization_max = 900;
  needs.sharing = {.utilization = 195};
  EXPECT_EQ(of(Cause::Gpus, needs, room), resume("--set utilization-limit.gpu=100%"));
  needs.sharing = {.utilization = 205};
  EXPECT_EQ(of(Cause::Gpus, needs, room), Help{}) << "no limit is more than the whole";
  room.gpus[0].avoided_for = 1001;
  EXPECT_EQ(of(Cause::Gpus, needs, room), resume("--set other-users=share"));
}

TEST(Help, WritesWhatIsSeenOfOneThatIsGivenAGpuOfItsOwn) {
  const Headroom room{.gpus = {{.label = "0", .holders = 1, .tasks = 1}}};
  for (const bool until_known : {false, true}) {
    Reason own{.cause = Cause::Gpus, .needs = {.gpus = 1}, .own_until_known = until_known};
    EXPECT_EQ(help_for(own, room, 1), Help{})
        << "nothing of it was seen: 'auto' would wait as well";
    own.gpu_memory_seen = mb(9600);
    EXPECT_EQ(help_for(own, room, 1), job_file("gpu-memory: at least 9.6GB"));
    own.needs.largest = true;
    EXPECT_EQ(help_for(own, room, 1), Help{}) << "the last try";
  }
}

TEST(Help, IsNoKeyOfAFileForWhatWasSubmitted) {
  const Reason parallel{.cause = Cause::Parallel, .parallel_max = 2};
  EXPECT_EQ(help_for(parallel, {}, 1), job_file("max-parallel: 3"));
  EXPECT_EQ(help_for(parallel, {}, 2), Help{}) << "it goes on by the text that was submitted";
  EXPECT_EQ(help_for({.cause = Cause::OthersUseCpu}, {}, 2),
            resume("--set utilization-limit.cpu=100%"));
}

TEST(Help, TakesAGpuThatIsLeftToAnotherUser) {
  Headroom room{.gpus = {{.label = "0", .of_others = gb(6), .avoided_for = 1001}}};
  EXPECT_EQ(of(Cause::Gpus, {.gpus = 1}, room), resume("--set other-users=share"));
  room.gpus[0].holders = 1;
  EXPECT_EQ(of(Cause::Gpus, {.gpus = 1}, room), Help{}) << "a task holds it as well";
}

}  // namespace
}  // namespace trainyard::model
