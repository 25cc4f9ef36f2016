// Fingerprints of tasks, of which journals are full: they stay what they were, however values reach
// a command.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "job/job.h"
#include "job/test_job.h"
#include "model/ids.h"
#include "model/resources.h"

namespace trainyard::job {
namespace {

/// The fingerprints of the job below, from a program that wrote values into the text of commands.
constexpr std::array<std::uint64_t, 28> kKept{
    0x0e0a9f3baa530a5cU, 0x34786fe4a366bba1U, 0x1882759964b48f6fU, 0x544fd5a06153b581U,
    0x1639e991a40bb22cU, 0x1f744866ba2f0509U, 0xafae60477591ace9U, 0xd708a5b3103374c5U,
    0x990052deae780e6dU, 0xff21b24546c3fdbcU, 0xfe16660c17d1a983U, 0x47081b90ef51f66cU,
    0x2c7ac32556fed951U, 0xdf63548dc277c4a6U, 0x10e448be6fb06ebdU, 0x0ca4b492873c907aU,
    0x391532b04dedc42aU, 0x03fe951111934799U, 0x0f044fbabd527461U, 0xe3befc1bab5836ebU,
    0x0aa4804d4c34397bU, 0xb0b42f258725d01cU, 0xdfef875bab19948eU, 0x692116ec3136b151U,
    0xff309e41a2601f2dU, 0xc84d6d9bdf6dd709U, 0x7993138c869cf767U, 0xb0da33b06fc452d6U};

constexpr std::string_view kJob = R"yaml(groups:
- name: text
  matrix: {lr: [1e-3, "it's"], note: ["a b", 'say "$HOME"; `x` \']}
  env: {NOTE: "note {note}"}
  tasks:
  - {id: "w-{lr}-{note}", command: "train --lr {lr} --note={note} --out {task_dir}/x >{run_dir}/log"}
  - {id: "d-{lr}-{note}", command: "train \"lr {lr}\" 'note {note}' # {note}"}
  - {id: "f-{lr}-{note}", command: "{lr} {note}; {note}>log $x{lr}"}
  - id: "h-{lr}-{note}"
    command: |
      cat >config.yaml <<EOF
      lr: {lr}
      note: "{note}"
      EOF
      train "$(printf %s {note})"
- name: list
  matrix: {seed: 0..1}
  working-directory: "sub/{seed}"
  env: {A: "1", B: "{task_id}"}
  tasks:
  - {command: [python3, fit.py, "--seed={seed}", "{task_dir}"], env: {A: "{group}"}}
- name: plain
  tasks: [{id: one, command: "true"}, {id: two, command: ["true"]}]
- name: gpus
  matrix: {n: [1, 2]}
  tasks:
  - {id: "own-{n}", command: "train {n}", gpus: "{n}"}
  - {id: "second-{n}", command: "train {n}", device: "cuda:1"}
  - {id: "cpu-{n}", command: "train {n}", device: cpu}
- name: ranks
  matrix: {lr: [0.1]}
  tasks:
  - {id: "built-in", command: "train {lr}", ranks: 2}
  - {id: "torchrun", command: [train, "{lr}"], ranks: 3, launcher: torchrun}
)yaml";

model::Capacity machine_with_cards() {
  model::Capacity machine = small_machine();
  for (int number = 0; number < 2; ++number) {
    machine.gpus.push_back(
        {.number = number, .uuid = fmt::format("GPU-{}", number), .memory = gb(24)});
  }
  return machine;
}

TEST(Fingerprint, IsWhatJournalsHave) {
  const Job job = job_of(kJob, in_job_directory(), machine_with_cards());
  ASSERT_EQ(job.plan().tasks.size(), kKept.size());
  for (std::size_t i = 0; i < kKept.size(); ++i) {
    const model::TaskIndex task{static_cast<std::uint32_t>(i)};
    EXPECT_EQ(job.fingerprint(task), kKept.at(i)) << job.task_id(task);
  }
}

/// The command fingerprints of the tasks of a group with these keys, one for each combination of
/// its matrix.
std::vector<std::int64_t> commands_of(std::string_view keys, std::string_view task) {
  const Job job = job_of(fmt::format("groups:\n- {{name: g, {}, tasks: [{{{}}}]}}\n", keys, task),
                         in_job_directory(), machine_with_cards());
  std::vector<std::int64_t> commands;
  for (std::uint32_t i = 0; i < job.plan().tasks.size(); ++i) {
    commands.push_back(job.command_fingerprint({i}));
  }
  return commands;
}

TEST(CommandFingerprint, IsOfTheCommandBeforeTheValuesOfTheIdAreFilledIn) {
  const auto one = commands_of("matrix: {lr: [1, 2]}", "command: 'train {lr}'");
  ASSERT_EQ(one.size(), 2U);
  EXPECT_EQ(one[0], one[1]);
  EXPECT_GT(one[0], 0);
  EXPECT_EQ(commands_of("matrix: {lr: [3]}", "command: 'train {lr}'")[0], one[0])
      << "a sweep that goes on";
  EXPECT_EQ(commands_of("matrix: {lr: [1]}, memory: 3GB, cpus: 2, duration: 1h",
                        "command: 'train {lr}'")[0],
            one[0]);
  for (const char* const other :
       {"command: 'train {lr} --epochs 1'", "command: [train, '{lr}']",
        "command: 'train {lr}', env: {A: b}", "command: 'train {lr}', working-directory: sub",
        "command: 'train {lr}', gpus: 1", "command: 'train {lr}', ranks: 2"}) {
    EXPECT_NE(commands_of("matrix: {lr: [1]}", other)[0], one[0]) << other;
  }
}

TEST(CommandFingerprint, HasTheValuesThatTheIdHasNot) {
  const std::string_view task = "id: 'lr{lr}', command: 'train {lr} {epochs}'";
  const auto smoke = commands_of("matrix: {lr: [1, 2], epochs: [1]}", task);
  ASSERT_EQ(smoke.size(), 2U);
  EXPECT_EQ(smoke[0], smoke[1]);
  EXPECT_NE(commands_of("matrix: {lr: [1, 2], epochs: [90]}", task)[0], smoke[0]);
}

}  // namespace
}  // namespace trainyard::job
