// Messages between the yard and the keeper arrive as they were sent, and nothing else is accepted.
#include "process/keeper_message.h"

#include <csignal>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "model/event.h"
#include "process/end_reader.h"

namespace trainyard::process {
namespace {

using ::testing::ElementsAre;

constexpr model::AttemptKey kKey{.task = {7}, .attempt = 3};

const EndNotes kEndNotes{.path = "/run/trainyard.ends",
                         .execution = 3,
                         .started_unix_ms = 1'700'000'000'000,
                         .clock_offset = Duration(-5'000)};

model::Launch some_launch() {
  return {.arguments = {"python3", "train.py", "", "a b\n"},
          .environment = {"A=1", "B="},
          .inherited = {"HOME=/me"},
          .user_variables = {"A=1"},
          .working_directory = "/work",
          .task_directory = "/run/t",
          .run_directory = "/run",
          .checkpoint_directory = "/run/t/checkpoints",
          .stdout_path = "/run/t/stdout.log",
          .stderr_path = "/run/t/stderr.log",
          .passes_term_on = true,
          .two_phase = true,
          .ranks = 3,
          .own_ranks = model::OwnRanks{.gpus = 2, .log_paths = {"/run/t/r1", "/run/t/r2"}},
          .forked = true,
          .memory_group = "/sys/fs/cgroup/job/trainyard-1-7.3",
          .memory_max = mib(300),
          .region_limits = {{.region = "drm/0000:03:00.0/vram0", .most = gb(9)}},
          .result_path = "/run/t/result.2.json",
          .result_copy_path = "/run/t/result.json",
          .journal_number = 17};
}

model::RanksAtEnd some_ranks() {
  return {.failed = 2, .finished = {1, 0}, .largest = 1, .largest_memory = mib(4)};
}

std::string some_messages() {
  std::string bytes;
  EXPECT_TRUE(append_start(bytes, kKey, some_launch()));
  append_signal(bytes, {.key = kKey, .signal = SIGUSR1, .grace = Duration(10'000)});
  append_started(bytes,
                 {.key = kKey, .pid = 4711, .others = {4712, 4713}, .at = Duration(86'400'000)});
  append_ended(bytes,
               {.key = kKey,
                .end = model::KilledBy{.signal = 9, .out_of_memory = true, .over_limit = true},
                .usage = {.memory_peak = mib(5), .cpu_time = Duration(12)},
                .mark = mib(2),
                .group_peak = mib(9),
                .left = {.result = "{}",
                         .trouble = "no",
                         .errors = "Traceback\n",
                         .errors_are_output = true,
                         .has_checkpoint = true},
                .ranks = some_ranks(),
                .at = Duration(86'400'900),
                .told_to_end = false});
  append_note(bytes, {.text = "mydata.rng"});
  append_pulse(bytes);
  append_rank_failed(bytes, {.key = kKey, .rank = 2, .end = model::ExitedWith{7}});
  append_remove(bytes, {.yard = 4710, .directory = "/run/user/1/trainyard-abcdef"});
  append_farewell(bytes);
  append_notes(bytes, kEndNotes);
  append_written(bytes, {.key = kKey});
  append_lease(bytes, {.until = Duration(86'460'000)});
  return bytes;
}

void expect_start_and_end(const KeeperMessage& message) {
  if (const auto* started = std::get_if<ProcessStarted>(&message)) {
    EXPECT_EQ(started->key, kKey);
    EXPECT_EQ(started->pid, 4711);
    EXPECT_THAT(started->others, ElementsAre(4712, 4713));
    EXPECT_EQ(started->at, Duration(86'400'000));
  }
  if (const auto* ended = std::get_if<ProcessEnded>(&message)) {
    EXPECT_EQ(ended->key, kKey);
    EXPECT_EQ(ended->end,
              model::End(model::KilledBy{.signal = 9, .out_of_memory = true, .over_limit = true}));
    EXPECT_EQ(ended->usage.memory_peak, mib(5));
    EXPECT_EQ(ended->usage.cpu_time, Duration(12));
    EXPECT_EQ(ended->mark, mib(2));
    EXPECT_EQ(ended->group_peak, mib(9));
    EXPECT_EQ(ended->left, (LeftBehind{.result = "{}",
                                       .trouble = "no",
                                       .errors = "Traceback\n",
                                       .errors_are_output = true,
                                       .has_checkpoint = true}));
    EXPECT_EQ(ended->ranks, some_ranks());
    EXPECT_EQ(ended->at, Duration(86'400'900));
    EXPECT_FALSE(ended->told_to_end);
  }
}

void expect_some_messages(KeeperMessageReader& reader, std::size_t from = 0) {
  for (std::size_t i = from; i < 12; ++i) {
    const auto message = reader.next();
    ASSERT_TRUE(message && *message) << i;
    ASSERT_EQ((*message)->index(), i);
    if (const auto* start = std::get_if<StartMessage>(&**message)) {
      EXPECT_EQ(start->key, kKey);
      EXPECT_THAT(start->launch.arguments, ElementsAre("python3", "train.py", "", "a b\n"));
      EXPECT_THAT(start->launch.environment, ElementsAre("A=1", "B="));
      EXPECT_THAT(start->launch.inherited, ElementsAre("HOME=/me"));
      EXPECT_THAT(start->launch.user_variables, ElementsAre("A=1"));
      EXPECT_EQ(start->launch.working_directory, "/work");
      EXPECT_EQ(start->launch.task_directory, "/run/t");
      EXPECT_EQ(start->launch.run_directory, "/run");
      EXPECT_EQ(start->launch.checkpoint_directory, "/run/t/checkpoints");
      EXPECT_EQ(start->launch.stdout_path, "/run/t/stdout.log");
      EXPECT_EQ(start->launch.stderr_path, "/run/t/stderr.log");
      EXPECT_EQ(start->launch.result_path, "/run/t/result.2.json");
      EXPECT_EQ(start->launch.result_copy_path, "/run/t/result.json");
      EXPECT_EQ(start->launch.ranks, 3);
      EXPECT_EQ(start->launch.own_ranks, some_launch().own_ranks);
      EXPECT_TRUE(start->launch.passes_term_on);
      EXPECT_TRUE(start->launch.forked);
      EXPECT_EQ(start->launch.memory_group, "/sys/fs/cgroup/job/trainyard-1-7.3");
      EXPECT_EQ(start->launch.memory_max, mib(300));
      EXPECT_EQ(start->launch.region_limits, some_launch().region_limits);
      EXPECT_TRUE(start->launch.two_phase);
      EXPECT_EQ(start->launch.journal_number, 17U);
    }
    if (const auto* signal = std::get_if<SignalMessage>(&**message)) {
      EXPECT_EQ(signal->key, kKey);
      EXPECT_EQ(signal->signal, SIGUSR1);
      EXPECT_EQ(signal->grace, Duration(10'000));
    }
    expect_start_and_end(**message);
    if (const auto* failed = std::get_if<RankFailed>(&**message)) {
      EXPECT_EQ(failed->key, kKey);
      EXPECT_EQ(failed->rank, 2);
      EXPECT_EQ(failed->end, model::End(model::ExitedWith{7}));
    }
    if (const auto* remove = std::get_if<RemoveMessage>(&**message)) {
      EXPECT_EQ(remove->yard, 4710);
      EXPECT_EQ(remove->directory, "/run/user/1/trainyard-abcdef");
    }
    if (const auto* notes = std::get_if<EndNotes>(&**message)) {
      EXPECT_EQ(*notes, kEndNotes);
    }
    if (const auto* written = std::get_if<WrittenMessage>(&**message)) {
      EXPECT_EQ(written->key, kKey);
    }
    if (const auto* lease = std::get_if<LeaseMessage>(&**message)) {
      EXPECT_EQ(lease->until, Duration(86'460'000));
    }
    if (const auto* note = std::get_if<KeeperNote>(&**message)) {
      EXPECT_EQ(note->text, "mydata.rng");
    }
  }
  EXPECT_EQ(reader.next().value(), std::nullopt);
  EXPECT_FALSE(reader.holds_a_part());
}

TEST(KeeperMessage, HasALogForEachRankButTheFirst) {
  model::Launch launch = some_launch();
  launch.own_ranks->log_paths.pop_back();
  std::string bytes;
  ASSERT_TRUE(append_start(bytes, kKey, launch));
  KeeperMessageReader reader;
  reader.add(bytes);
  EXPECT_FALSE(reader.next());
}

TEST(KeeperMessage, ComesOutAsItWentIn) {
  KeeperMessageReader reader;
  reader.add(some_messages());
  expect_some_messages(reader);
}

TEST(KeeperMessage, ComesOutWhereverTheStreamWasCut) {
  const std::string bytes = some_messages();
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    KeeperMessageReader reader;
    reader.add(std::string_view(bytes).substr(0, cut));
    std::size_t taken = 0;
    while (true) {
      const auto message = reader.next();
      ASSERT_TRUE(message);
      if (!*message) break;
      ++taken;
    }
    ASSERT_LE(taken, 12U);
    reader.add(std::string_view(bytes).substr(cut));
    expect_some_messages(reader, taken);
  }
}

TEST(KeeperMessage, CarriesEveryKindOfEnd) {
  for (const model::End& end :
       {model::End(model::ExitedWith{-3}), model::End(model::KilledBy{.signal = 11}),
        model::End(model::NotStarted{"why"}),
        model::End(model::NotStarted{.why = "why", .of_machine = true}),
        model::End(model::Vanished{""})}) {
    std::string bytes;
    append_ended(bytes, {.key = kKey, .end = end, .usage = {}});
    KeeperMessageReader reader;
    reader.add(bytes);
    EXPECT_EQ(std::get<ProcessEnded>(reader.next().value().value()).end, end);
  }
}

TEST(KeeperMessage, KnowsAHalfWrittenOne) {
  const std::string bytes = some_messages();
  KeeperMessageReader reader;
  reader.add(std::string_view(bytes).substr(0, 10));
  EXPECT_EQ(reader.next().value(), std::nullopt);
  EXPECT_TRUE(reader.holds_a_part());
}

TEST(KeeperMessage, RefusesOneThatIsTooLongAndKeepsTheRest) {
  model::Launch launch = some_launch();
  launch.environment.push_back("BIG=" + std::string(kKeeperMessageMax, 'x'));
  std::string bytes = "before";
  const auto added = append_start(bytes, kKey, launch);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().message, "the command and its environment have 16.8 MB, at most 16.8 MB");
  EXPECT_EQ(bytes, "before");
}

TEST(KeeperMessage, RefusesALengthThatNoneHasBeforeItHasCome) {
  const std::uint32_t length = kKeeperMessageMax + 1;
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  KeeperMessageReader reader;
  reader.add(bytes);
  EXPECT_FALSE(reader.next());
}

TEST(KeeperMessage, RefusesWhatIsCutShortOrTooLongOrOfNoKind) {
  std::string whole;
  append_started(whole, {.key = kKey, .pid = 1});
  const auto body_with = [&](std::size_t size, char kind) {
    std::string bytes = whole.substr(0, 4);
    bytes += kind + whole.substr(5);
    bytes.resize(4 + size, '\0');
    const auto length = static_cast<std::uint32_t>(size);
    std::memcpy(bytes.data(), &length, sizeof(length));
    return bytes;
  };
  const std::size_t right = whole.size() - 4;
  const auto is_read = [](const std::string& bytes) {
    KeeperMessageReader reader;
    reader.add(bytes);
    const auto message = reader.next();
    return message && *message;
  };
  EXPECT_TRUE(is_read(body_with(right, 3)));
  EXPECT_FALSE(is_read(body_with(right - 1, 3)));
  EXPECT_FALSE(is_read(body_with(right + 1, 3)));
  EXPECT_FALSE(is_read(body_with(0, 3)));
  for (const char kind : {'\0', '\5', '\377'}) EXPECT_FALSE(is_read(body_with(right, kind)));
}

TEST(KeeperMessage, IsNotFooledByACountThatIsALie) {
  std::string bytes;
  ASSERT_TRUE(append_start(bytes, kKey, some_launch()));
  const std::uint32_t lie = 0xffffffff;
  // The number of arguments comes after length, kind and key.
  std::memcpy(bytes.data() + 13, &lie, sizeof(lie));
  KeeperMessageReader reader;
  reader.add(bytes);
  EXPECT_FALSE(reader.next());
}

}  // namespace
}  // namespace trainyard::process
