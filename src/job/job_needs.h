// The order of the groups, by the names in `needs` or after the group before, and the needs between
// tasks of groups that are matched by keys of the matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "job/job_spec.h"
#include "model/ids.h"
#include "model/plan.h"
#include "text/mistake.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

struct Needs {
  std::vector<model::GroupIndex> own;      ///< Groups of the same file.
  std::vector<model::GroupIndex> earlier;  ///< Groups of earlier batches, numbered over the whole
                                           ///< run.
  std::vector<model::GroupIndex> by_task;  ///< Groups of the same file, matched task by task.
};

/// The groups of the batches before, in order.
using GroupsBefore = std::span<const model::PlannedGroup* const>;

/// The needs of each group. A name is that of a group of the file, else what people call one of
/// `groups_before`, or the name of the latest that has it. Unknown names and circles are mistakes.
std::vector<Needs> resolve_needs(const JobSpec& spec, GroupsBefore groups_before,
                                 const text::YamlDocument& document, text::MistakeList& mistakes);

/// "clients.3": the name for people, and of the directory, of a group in a round of a repeat.
std::string name_in_round(std::string_view group, std::uint32_t round);

/// The group and the round of such a name; nothing where it is none.
struct RoundOfGroup {
  std::string_view group;
  std::uint32_t round = 0;
};
std::optional<RoundOfGroup> read_name_in_round(std::string_view name);

/// The name under which users see a group of the batch: "clients.3" in a round, "train (2)" if an
/// earlier batch has a group of the name. Empty if its own name is not taken.
std::string called_in_run(const GroupSpec& group, const JobSpec& spec, std::uint32_t batch,
                          GroupsBefore groups_before);

/// Maximum number of needs between the tasks of a job.
constexpr std::size_t kTaskNeedsMax = 10'000'000;

/// The needs between tasks of matched groups, in the order that model::Plan wants. `starts` are the
/// numbers of the first task of each group. A task without a counterpart is a mistake. Costs
/// O(needs).
std::vector<model::TaskNeed> match_tasks(const JobSpec& spec, std::span<const std::uint32_t> starts,
                                         const text::YamlDocument& document,
                                         text::MistakeList& mistakes);

}  // namespace trainyard::job
