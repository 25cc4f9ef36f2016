#include "wire/events.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/Assertions.h>
#include <rapidcheck/Check.h>
#include <rapidcheck/gen/Numeric.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/terms.h"
#include "model/waiting.h"
#include "wire/result_text.h"
#include "wire/test_values.h"

namespace trainyard::wire {
namespace {

using model::Event;

Event at(std::int64_t ms, model::What what) {
  return {.at = Instant{Duration(ms)}, .what = std::move(what)};
}

/// The text of an event that is read again as the same.
std::string text_and_back(const Event& event) {
  std::string text = to_text(event);
  const Result<Event> read = event_from_text(text);
  EXPECT_EQ(read.has_value() ? "" : read.error().message, "") << text;
  if (read) {
    EXPECT_TRUE(*read == event) << text << " was read as " << to_text(*read);
  }
  return text;
}

std::string event_fault(std::string_view text) {
  const Result<Event> read = event_from_text(text);
  return read ? "none: " + to_text(*read) : read.error().message;
}

TEST(Events, AreAsShortAsWhatTheySay) {
  EXPECT_EQ(text_and_back(at(0, model::TimePassed{})), R"({"time_passed":{}})");
  EXPECT_EQ(text_and_back(at(-5, model::TimePassed{})), R"({"at":-5,"time_passed":{}})");
  EXPECT_EQ(
      text_and_back(at(
          61'250, model::Sampled{.memory_available = {64'000'000'000},
                                 .cpu_used_by_others = 0.1,
                                 .tasks = {{.key = {.task = {7}, .attempt = 2}, .memory = {4096}},
                                           {.key = {.task = {8}}}},
                                 .disk = model::DiskRoom{.free = {1}, .total = {2}},
                                 .machine = {3}})),
      R"({"at":61250,"sampled":{"memory_available":64000000000,"cpu_used_by_others":0.1,)"
      R"("tasks":[{"key":{"task":7,"attempt":2},"memory":4096},{"key":{"task":8}}],)"
      R"("disk":{"free":1,"total":2},"machine":3}})");
  EXPECT_EQ(text_and_back(at(9, model::AttemptEnded{.key = {.task = {0}, .attempt = 1},
                                                    .end = model::KilledBy{.signal = 9},
                                                    .usage = {.cpu_time = Duration(70)},
                                                    .result = R"({"loss":0.5})",
                                                    .last_words = "bye\n",
                                                    .ranks = {.failed = 0, .finished = {2, 1}},
                                                    .ended = Instant{Duration(8)}})),
            R"({"at":9,"attempt_ended":{"end":{"killed":{"signal":9}},"usage":{"cpu_time":70},)"
            R"("result":"{\"loss\":0.5}","last_words":"bye\n","ranks":{"failed":0,)"
            R"("finished":[2,1]},"ended":8}})");
  EXPECT_EQ(text_and_back(at(0, model::AttemptEnded{})), R"({"attempt_ended":{}})");
  EXPECT_EQ(text_and_back(at(0, model::KeeperSilent{.silent = false, .another = 0})),
            R"({"keeper_silent":{"silent":false,"another":0}})");
}

TEST(Events, TellOfMachinesAndOfBatches) {
  model::Capacity capacity{.memory = {100},
                           .cpus = model::cpus(2),
                           .processes_max = 5,
                           .processes_max_reason = "512 open files",
                           .gpus = {{.uuid = "MIG-1", .maker = model::GpuMaker::Amd, .slice = 0}}};
  EXPECT_EQ(text_and_back(
                at(1, model::MachineJoined{.machine = {1}, .name = "lab1", .capacity = capacity})),
            R"({"at":1,"machine_joined":{"machine":1,"name":"lab1","capacity":{"memory":100,)"
            R"("cpus":2000,"processes_max":5,"processes_max_reason":"512 open files",)"
            R"("gpus":[{"uuid":"MIG-1","maker":"amd","slice":0}]}}})");
  model::Plan plan{
      .groups = {{.name = "load"}, {.name = "train", .needs = {{0}}}},
      .shapes = {{.group = {0}}, {.group = {1}, .terms = {.run_if = model::RunIf::Always}}},
      .tasks = {{}, {.shape = {1}, .before = model::Verdict::NotSelected}}};
  EXPECT_EQ(text_and_back(at(0, model::BatchAdded{.plan = std::make_shared<model::Plan>(plan)})),
            R"({"batch_added":{"plan":{"groups":[{"name":"load"},{"name":"train","needs":[0]}],)"
            R"("shapes":[{},{"group":1,"terms":{"run_if":"always"}}],)"
            R"("tasks":[{},{"shape":1,"before":"not_selected"}]}}})");
  // A plan of nothing is one.
  EXPECT_EQ(text_and_back(at(0, model::BatchAdded{.plan = std::make_shared<model::Plan>()})),
            R"({"batch_added":{"plan":{}}})");
}

TEST(Events, KeepTextThatIsNoUtf8) {
  EXPECT_EQ(text_and_back(at(0, model::MachineGone{.why = "a\xff\x01"})),
            R"({"machine_gone":{"why":{"hex":"61ff01"}}})");
  EXPECT_EQ(text_and_back(at(0, model::MachineGone{.why = "\"\\\n\x01 caf\xc3\xa9"})),
            "{\"machine_gone\":{\"why\":\"\\\"\\\\\\n\\u0001 caf\xc3\xa9\"}}");
}

TEST(Events, KeepNumbersToTheLastBit) {
  using Limits = std::numeric_limits<double>;
  const auto text_of = [](double fraction) {
    return text_and_back(at(0, model::Progressed{.fraction = fraction}));
  };
  const auto written = [](std::string_view number) {
    return fmt::format(R"({{"progressed":{{"fraction":{}}}}})", number);
  };
  EXPECT_EQ(text_of(0), written("0"));
  EXPECT_EQ(text_of(1), written("1"));
  EXPECT_EQ(text_of(0.1), written("0.1"));
  EXPECT_EQ(text_of(1.0 / 3), written("0.3333333333333333"));
  EXPECT_EQ(text_of(Limits::denorm_min()), written("5e-324"));
  EXPECT_EQ(text_of(Limits::max()), written("1.7976931348623157e+308"));
  EXPECT_EQ(text_of(Limits::infinity()), written(R"("inf")"));
  EXPECT_EQ(text_of(-Limits::infinity()), written(R"("-inf")"));
  // NaN differs from itself, and -0 does not differ from 0: so their texts are compared.
  const auto sampled = [](double used) {
    const std::string text = to_text(at(0, model::Sampled{.cpu_used_by_others = used}));
    const Event read = event_from_text(text).value();
    return std::pair(text, std::get<model::Sampled>(read.what).cpu_used_by_others);
  };
  EXPECT_EQ(sampled(-0.0).first, R"({"sampled":{"cpu_used_by_others":-0.0}})");
  EXPECT_TRUE(std::signbit(sampled(-0.0).second));
  EXPECT_EQ(sampled(Limits::quiet_NaN()).first, R"({"sampled":{"cpu_used_by_others":"nan"}})");
  EXPECT_TRUE(std::isnan(sampled(Limits::quiet_NaN()).second));
}

TEST(Events, AreReadAsTheyWereWrittenWhateverTheySay) {
  for (std::size_t which = 0; which < std::variant_size_v<model::What>; ++which) {
    const bool holds = rc::check(fmt::format("what {} says is what is read", which), [which] {
      Event event;
      make_up(event.at);
      make_up(event.what, which);
      RC_ASSERT(event.what.index() == which);
      const std::string text = to_text(event);
      const Result<Event> read = event_from_text(text);
      RC_ASSERT((read ? "" : read.error().message) == "");
      RC_ASSERT(to_text(*read) == text);
      // One that holds what is no number differs from itself.
      if (!text.contains(R"("nan")")) RC_ASSERT(*read == event);
      RC_ASSERT(text.find('\n') == std::string::npos);
      const auto cut = *rc::gen::inRange<std::size_t>(0, text.size());
      RC_ASSERT(!event_from_text(text.substr(0, cut)).has_value());
    });
    EXPECT_TRUE(holds);
  }
}

TEST(Events, AreReadWithoutWhatNobodyKnows) {
  const Event read = event_from_text(R"({"later":[{"a":[]}],"hold_asked":{"task":4,"colour":"red",)"
                                     R"("hold":null},"sampled":null,"at":2})")
                         .value();
  EXPECT_TRUE(read == at(2, model::HoldAsked{.task = {4}, .hold = true}));
}

TEST(Events, SayWhereTheyAreWrong) {
  EXPECT_EQ(event_fault(R"({"sampled":{"tasks":[{},{},{},{"memory":"9"}]}})"),
            "event: sampled.tasks[3].memory: must be a whole number from -9223372036854775808 to "
            "9223372036854775807");
  EXPECT_EQ(event_fault(R"({"at":1.5,"time_passed":{}})"),
            "event: at: must be a whole number from -9223372036854775808 to 9223372036854775807");
  EXPECT_EQ(event_fault(R"({"at":9223372036854775808,"time_passed":{}})"),
            "event: at: must be a whole number from -9223372036854775808 to 9223372036854775807");
  EXPECT_EQ(event_fault(R"({"kill_asked":{"task":4294967296}})"),
            "event: kill_asked.task: must be a whole number from 0 to 4294967295");
  EXPECT_EQ(event_fault(R"({"kill_asked":{"task":-1}})"),
            "event: kill_asked.task: must be a whole number from 0 to 4294967295");
  EXPECT_EQ(event_fault(R"({"kill_asked":{"request":18446744073709551616}})"),
            "event: kill_asked.request: must be a whole number from 0 to 18446744073709551615");
  EXPECT_EQ(
      event_fault(R"({"priority_asked":{"priority":2147483648}})"),
      "event: priority_asked.priority: must be a whole number from -2147483648 to 2147483647");
  EXPECT_EQ(event_fault(R"({"hold_asked":{"hold":1}})"),
            "event: hold_asked.hold: must be true or false");
  EXPECT_EQ(event_fault(R"({"machine_gone":{"why":7}})"), "event: machine_gone.why: must be text");
  EXPECT_EQ(event_fault(R"({"machine_gone":{"why":{"hex":"6"}}})"),
            "event: machine_gone.why: must be text, or an object with its bytes as 'hex'");
  EXPECT_EQ(event_fault(R"({"machine_gone":{"why":{"hex":"6g"}}})"),
            "event: machine_gone.why: must be text, or an object with its bytes as 'hex'");
  EXPECT_EQ(event_fault(R"({"progressed":{"fraction":"Nan"}})"),
            R"(event: progressed.fraction: must be a number, "nan", "inf" or "-inf")");
  EXPECT_EQ(event_fault(R"({"stage_reported":{"said":"sung"}})"),
            "event: stage_reported.said: must be one of loading, loaded, training, trained, "
            "out_of_memory, failed, nonsense, not 'sung'");
  EXPECT_EQ(event_fault(R"({"batch_added":{"plan":{"tasks":[{"before":"left_out"}]}}})"),
            "event: batch_added.plan.tasks[0].before: must be one of none, finished, failed, "
            "skipped, stopped, not_selected, not_needed, not 'left_out'");
  EXPECT_EQ(event_fault(R"({"machine_joined":{"capacity":{"gpus":[{"maker":1}]}}})"),
            "event: machine_joined.capacity.gpus[0].maker: must be one of nvidia, amd");
  EXPECT_EQ(event_fault(R"({"limits_changed":{"drained":[1,"x"]}})"),
            "event: limits_changed.drained[1]: must be a whole number from 0 to 4294967295");
  EXPECT_EQ(event_fault(R"({"limits_changed":{"drained":{}}})"),
            "event: limits_changed.drained: must be a list");
  EXPECT_EQ(event_fault(R"({"claim_refused":{"attempts":[null]}})"),
            "event: claim_refused.attempts[0]: must be an object, not null");
  EXPECT_EQ(event_fault(R"({"attempt_ended":{"end":{}}})"),
            "event: attempt_ended.end: must have one of exited, killed, not_started, vanished");
  EXPECT_EQ(event_fault(R"({"attempt_ended":{"end":{"killed":{},"exited":{}}}})"),
            "event: attempt_ended.end: has both 'exited' and 'killed'");
  EXPECT_EQ(event_fault(R"({"time_passed":[]})"),
            "event: time_passed: must be an object, not array");
}

TEST(Events, AreOneObjectThatSaysOneThing) {
  const std::string all =
      "event: must have one of machine_joined, machine_gone, attempt_started, stage_reported, "
      "progressed, attempt_ended, sampled, gpus_sampled, keeper_silent, interrupt_asked, "
      "kill_asked, retry_asked, hold_asked, priority_asked, batch_added, neighbours_seen, "
      "claim_refused, limits_changed, attempt_found, code_found, time_passed";
  EXPECT_EQ(event_fault("{}"), all);
  EXPECT_EQ(event_fault(R"({"at":3,"of_a_later_version":{}})"), all);
  EXPECT_EQ(event_fault(R"({"sampled":{},"time_passed":{}})"),
            "event: has both 'sampled' and 'time_passed'");
  EXPECT_EQ(event_fault("[]"), "event: must be an object, not array");
  EXPECT_EQ(event_fault(""), "event: 1:1: expected a JSON value, found the end of the text");
  EXPECT_EQ(event_fault(R"({"time_passed":{}}x)"),
            "event: 1:19: expected the end after the JSON value, found 'x'");
  EXPECT_EQ(event_fault(R"({"progressed":{"fraction":NaN}})"),
            "event: 'progressed.fraction' was NaN: kept as null");
}

TEST(Events, NestNoDeeperThanTheyMay) {
  const auto nested = [](int levels) {
    return R"({"sampled":{"tasks":)" + std::string(static_cast<std::size_t>(levels), '[') +
           std::string(static_cast<std::size_t>(levels), ']') + "}}";
  };
  EXPECT_EQ(event_fault(nested(2)), "event: sampled.tasks[0]: must be an object, not array");
  EXPECT_EQ(event_fault(nested(kJsonDepthMax - 2)),
            "event: sampled.tasks[0]: must be an object, not array");
  EXPECT_EQ(event_fault(nested(kJsonDepthMax - 1)).substr(0, 28), "event: sampled.tasks[0][0][0");
  EXPECT_EQ(event_fault(nested(100'000)).substr(0, 28), "event: sampled.tasks[0][0][0");
  EXPECT_TRUE(event_fault(nested(100'000)).ends_with("...: nested deeper than 64"));
}

TEST(Events, BringAPlanThatIsOne) {
  EXPECT_EQ(event_fault(R"({"batch_added":{}})"), "event: batch_added.plan: is missing");
  EXPECT_EQ(event_fault(R"({"batch_added":{"plan":{"groups":[{}],"tasks":[{}]}}})"),
            "event: batch_added.plan.tasks[0].shape: there is no shape 0, only 0");
  EXPECT_EQ(
      event_fault(R"({"batch_added":{"plan":{"shapes":[{"terms":{"retries":{"delay":true}}}]}}})"),
      "event: batch_added.plan.shapes[0].terms.retries.delay: must be a whole number from "
      "-9223372036854775808 to 9223372036854775807");
}

TEST(Events, CutShortAreNone) {
  const model::Plan plan{.groups = {{.name = "caf\xc3\xa9 \n"}},
                         .shapes = {{.group = {0}, .terms = {.ranks = 12}}},
                         .tasks = {{}, {.first_attempt = 20}},
                         .said = {{.task = {1}, .on_hold = true, .priority = -7}},
                         .sharing = {{.factor = 1.5e-8}}};
  for (const Event& event :
       {at(10, model::BatchAdded{.plan = std::make_shared<model::Plan>(plan)}),
        at(-1, model::MachineGone{.why = "\xff\xfe"}),
        at(12, model::AttemptEnded{.end = model::NotStarted{.why = "\"\\"}})}) {
    const std::string text = text_and_back(event);
    for (std::size_t size = 0; size < text.size(); ++size) {
      // A copy that ends where it ends, so that a read past it is seen.
      const std::vector<char> cut(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_FALSE(event_from_text(std::string_view(cut.data(), cut.size())).has_value())
          << text.substr(0, size);
    }
  }
}

TEST(Decisions, AreNothingWhereNothingWasDecided) { EXPECT_EQ(to_text(model::Decision{}), "{}"); }

TEST(Decisions, SayAllThatChangedAndAllThatIsToBeDone) {
  const model::AttemptKey key{.task = {3}, .attempt = 2};
  model::Decision decision;
  decision.changes = {
      model::TaskChanged{.key = key,
                         .status = Status::Exception,
                         .verdict = model::Verdict::Failed,
                         .failure = model::Failure::Exit,
                         .stage = Stage::Load,
                         .exit_code = 7,
                         .message = "exit code 7",
                         .retry_at = Instant{Duration{8}},
                         .with_group = true},
      model::GroupChanged{.group = {1}, .phase = model::GroupPhase::Skipped, .message = "why"},
      model::ReasonChanged{
          .shape = {2},
          .reason = {.cause = model::Cause::Memory, .needs = {.memory = {5}}, .machine = {1}}},
      model::Reached{.task = {3}, .memory = {9}, .largest = true},
      model::SharingMeasured{.shape = {2}, .to_a_gpu = 2, .factor = 1.5},
      model::Learned{.shape = {2}, .memory = {4}, .tasks = 6},
      model::SaidOfTask{.task = {3}, .on_hold = true, .priority = -1},
      model::HeadroomSeen{
          .headroom = {.at = Instant{Duration{3}}, .memory_free = {-4}, .gpus = {{.label = "0"}}},
          .machine = {1}}};
  decision.commands = {model::StopAttempt{.key = key, .kill = true}};
  EXPECT_EQ(
      to_text(decision),
      R"({"changes":[{"task":{"key":{"task":3,"attempt":2},"status":"EXCEPTION","verdict":)"
      R"("failed","failure":"EXIT","stage":"load","exit_code":7,"message":"exit code 7","retry_at":8,)"
      R"("with_group":true}},)"
      R"({"group":{"group":1,"phase":"skipped","message":"why"}},)"
      R"({"reason":{"shape":2,"reason":{"cause":"memory","needs":{"memory":5},"machine":1}}},)"
      R"({"reached":{"task":3,"memory":9,"largest":true}},)"
      R"({"sharing":{"shape":2,"to_a_gpu":2,"factor":1.5}},)"
      R"({"learned":{"shape":2,"memory":4,"tasks":6}},)"
      R"({"said":{"task":3,"on_hold":true,"priority":-1}},)"
      R"({"headroom":{"headroom":{"at":3,"memory_free":-4,"gpus":[{"label":"0"}]},"machine":1}}],)"
      R"("commands":[{"stop_attempt":{"key":{"task":3,"attempt":2},"kill":true}}]})");
}

TEST(Decisions, ThatDifferInOneNumberHaveDifferentTexts) {
  model::Decision one;
  one.changes = {model::HeadroomSeen{.headroom = {.memory_free = gb(1)}}};
  model::Decision other = one;
  std::get<model::HeadroomSeen>(other.changes[0]).headroom.cpu_used_by_others = 0x1p-1074;
  EXPECT_NE(to_text(one), to_text(other));
}

TEST(Policies, AreReadAsTheyWereWrittenWhateverTheySay) {
  const model::Policy all{.cpu_utilization_max = 0.1,
                          .memory_utilization_max = 0.2,
                          .memory_remain = {1},
                          .gpu_strategy = model::GpuStrategy::Performance,
                          .gpu_reverse = true,
                          .gpu_avoids_others = false,
                          .gpu_memory_utilization_max = 0.3,
                          .gpu_utilization_max = 0.4,
                          .gpu_memory_remain = Bytes{2},
                          .gpu_memory_least = {3},
                          .processes_max = 4,
                          .waiting_max = 5,
                          .load_retries = 6,
                          .train_retries = 7,
                          .machine_patience = Duration{16},
                          .auto_adjust = true,
                          .looks_ahead = false,
                          .stop_grace = Duration{8},
                          .passes_max = 9,
                          .passed_time_max = Duration{10},
                          .watches_memory = true,
                          .kernel_keeps_limits = true,
                          .gpu_linger_max = Duration{11},
                          .gpu_settle_max = Duration{12},
                          .gpu_gone_max = Duration{13},
                          .gpu_steady_after = Duration{14},
                          .try_first_time = Duration{15}};
  const std::string text =
      R"({"cpu_utilization_max":0.1,"memory_utilization_max":0.2,"memory_remain":1,)"
      R"("gpu_strategy":"performance","gpu_reverse":true,"gpu_avoids_others":false,)"
      R"("gpu_memory_utilization_max":0.3,"gpu_utilization_max":0.4,"gpu_memory_remain":2,)"
      R"("gpu_memory_least":3,"processes_max":4,"waiting_max":5,"load_retries":6,)"
      R"("train_retries":7,"machine_patience":16,"auto_adjust":true,"looks_ahead":false,)"
      R"("stop_grace":8,"passes_max":9,)"
      R"("passed_time_max":10,"watches_memory":true,"kernel_keeps_limits":true,)"
      R"("gpu_linger_max":11,"gpu_settle_max":12,"gpu_gone_max":13,"gpu_steady_after":14,)"
      R"("try_first_time":15})";
  EXPECT_EQ(to_text(all), text);
  EXPECT_EQ(to_text(policy_from_text(text).value()), text);
  EXPECT_EQ(to_text(model::Policy{}), "{}");
  EXPECT_EQ(to_text(policy_from_text("{}").value()), "{}");
}

TEST(Policies, SayWhereTheyAreWrong) {
  const auto fault = [](const char* text) {
    const Result<model::Policy> read = policy_from_text(text);
    return read ? "none" : read.error().message;
  };
  EXPECT_EQ(fault(R"({"gpu_strategy":"best"})"),
            "policy: gpu_strategy: must be one of pci, total_memory, remaining_memory, "
            "performance, best_fit, idle_first, not 'best'");
  EXPECT_EQ(fault("[]"), "policy: must be an object, not array");
}

}  // namespace
}  // namespace trainyard::wire
