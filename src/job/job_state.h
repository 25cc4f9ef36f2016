// The state behind a Job. For the files of this folder alone.
#pragma once

#include <compare>
#include <map>

#include "job/job.h"
#include "job/job_binding.h"
#include "job/job_spec.h"
#include "job/task_environment.h"
#include "job/task_terms.h"
#include "text/placeholder.h"

namespace trainyard::job {

struct Job::State {
  std::string text;
  std::string name;
  JobPaths paths;
  std::optional<run::CodeCopy> code_copy;
  std::optional<MovedDirectory> moved_directory;
  settings::Configuration configuration;
  model::Capacity capacity;
  std::vector<model::NamedMachine> machines;
  Variables environment;  ///< The part of the yard's environment that matters here.
  /// Names of all variables of the environment that the yard was started with.
  std::set<std::string, std::less<>> variable_names;
  JobSpec spec;
  std::shared_ptr<const model::Plan> plan;  ///< Shared with the event that adds it to a run.
  std::vector<text::WebAddress> notify;
  std::vector<std::string> notify_notes;
  std::vector<std::string> notes;
  bool lacks_gpu = false;             ///< See Job::lacks_gpu().
  std::vector<std::string> warnings;  ///< The notes that are about the results.
  std::vector<std::uint32_t> group_starts;
  Learned learned;
  LearnedFor here;
  std::vector<LearnedUse> learned_uses;  ///< By shape.
  std::vector<int> gpu_shares;           ///< By group.
  /// A task by the hash of its id. Made for each group in which a task was looked up by its id.
  struct HashedId {
    std::size_t hash = 0;
    model::TaskIndex task;

    friend auto operator<=>(const HashedId&, const HashedId&) = default;
  };
  mutable std::map<std::size_t, std::vector<HashedId>> ids;
  [[nodiscard]] const std::vector<HashedId>& ids_of(std::size_t group) const;

  /// One task, with the values of all its placeholders but those of its directories.
  struct Bound {
    const GroupSpec* group = nullptr;
    const TaskSpec* task = nullptr;
    model::GroupIndex index;  ///< The index of the group.
    text::Bindings bindings;
    std::map<std::size_t, std::vector<std::string>> lists;  ///< By slot: the values of slots with
                                                            ///< several values.
    std::string id;
    model::Elsewhere elsewhere = {};             ///< The machine where it is to start.
    std::vector<std::string> named_directories;  ///< Directories of other tasks in its texts, as
                                                 ///< they are here.
  };
  [[nodiscard]] Bound bind(model::TaskIndex index) const;

  /// The tasks of a group that it needs, in order.
  [[nodiscard]] std::vector<model::TaskIndex> needed_of(model::TaskIndex task,
                                                        const std::string& group) const;
  /// A task that another names in its texts.
  struct Other {
    std::string group;  ///< The name for people.
    std::string id;
    std::string directory;
  };
  /// A task of a group, by its place in it, that may be in another batch: in round `round` of a
  /// repeat, or in a group before it.
  [[nodiscard]] Other other_in(const GroupSpec& group, std::size_t index,
                               std::optional<std::uint32_t> round) const;
  /// The tasks that a placeholder is about, in order. For a value of the round before, in round 0,
  /// these are the tasks that stand for it.
  [[nodiscard]] std::vector<Other> others_of(model::TaskIndex task, const Bound& bound,
                                             const NeedsValue& value) const;
  /// The text that the user has configured for a value of the round before in round 0; nothing if
  /// the substitute is not a text, or not needed.
  [[nodiscard]] const std::string* initial_text(const Bound& bound, const NeedsValue& value) const;

  /// Binds the values of the tasks that it needs, and of the round before, in its texts. Returns
  /// the reason why it cannot start if a value is missing; without `result_of`, values of results
  /// are left as configured.
  [[nodiscard]] std::optional<std::string> bind_needs(model::TaskIndex task, Bound& bound,
                                                      const ResultOf& result_of) const;

  /// The reason why bash might run a part of a bound value, if the command has bash evaluate
  /// variables. Nothing: the values are plain, or the command has no such place.
  [[nodiscard]] std::optional<std::string> why_not_plain(const Bound& bound) const;
  /// Adds a mistake for each task of the file that has a value which is not plain, as far as values
  /// are known before it starts.
  void check_values(const text::YamlDocument& document, text::MistakeList& mistakes) const;

  [[nodiscard]] std::string directory_of(const Bound& bound) const;
  /// In the copy of the code, where it has one.
  [[nodiscard]] std::string place_of(const std::string& directory) const;
  [[nodiscard]] std::string working_directory_of(const Bound& bound) const;

  /// The program that it runs, as far as that can be searched for beforehand; nothing: the run
  /// makes it.
  [[nodiscard]] std::optional<ProgramOfTasks> program_of(model::TaskIndex task) const;

  /// The ways to cap a task to a part of its GPU, if it finds these variables and the yard's.
  [[nodiscard]] Cappers cappers_of(const Bound& bound, const Variables& said,
                                   const std::string& working_directory) const;
  /// And the variables that do so.
  [[nodiscard]] Variables caps_for(const Cappers& cappers, const model::Shape& shape,
                                   const model::Grant& grant) const;
  /// Adds these to the launch.
  void add_caps(const Bound& bound, const Variables& said, const model::Shape& shape,
                const model::Grant& grant, model::Launch& launch) const;
};

/// The configuration of a job file: the layers of settings/configuration.h, with the file's own keys
/// between them. `directory` is that of the file: a relative workdir starts there. The configuration
/// of a submission may only be about its own tasks.
settings::Configuration layered(const LoadOptions& options, const text::YamlDocument& document,
                                const std::string& directory, text::MistakeList& mistakes);

}  // namespace trainyard::job
