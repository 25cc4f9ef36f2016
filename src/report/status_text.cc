#include "report/status_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "model/sharing_text.h"
#include "model/status.h"
#include "report/digest.h"
#include "report/help_line.h"
#include "report/json_rows.h"
#include "report/machine_text.h"
#include "report/other_code.h"
#include "report/planned_time.h"
#include "report/result_fields.h"
#include "report/retry_advice.h"
#include "report/terminal_text.h"
#include "run/run_directory.h"
#include "sys/files.h"
#include "text/shell_quote.h"

namespace trainyard::report {
namespace {

using Cells = std::vector<std::string>;
constexpr int kCellGap = 2;
constexpr int kNameMax = 60;
// In a narrow terminal, names are shortened to this width before columns are left out,
constexpr int kTaskNameShort = 32;
// and to this one afterwards.
constexpr int kTaskNameLeast = 12;
constexpr int kGroupNameLeast = 6;
constexpr int kProgressShort = 20;
constexpr std::string_view kProgressTitle = "PROGRESS";
/// Columns that a narrow terminal does not show, the first one first.
constexpr std::string_view kReservedTitle = "RESERVED";
constexpr std::array<std::string_view, 5> kLeftOutFirst{"ATTEMPT", "CAP", kReservedTitle, "MEMORY",
                                                        "GPU MEMORY"};
constexpr std::size_t kReasonsShown = 20;

int line_width(const std::vector<Cells>& rows) {
  int all = -kCellGap;
  for (const int column : column_widths(rows)) all += column + kCellGap;
  return all;
}

/// Lines of cells in columns: the first one to the left, the others to the right.
std::string aligned(const std::vector<Cells>& rows) {
  const std::vector<int> widths = column_widths(rows);
  std::string text;
  for (const Cells& cells : rows) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) text.append(kCellGap, ' ');
      text += i == 0 ? pad_right(cells[i], widths[i]) : pad_left(cells[i], widths[i]);
    }
    text += '\n';
  }
  return text;
}

/// Shortens names and leaves out columns until the lines have at most `width` columns (0: any).
/// Returns the titles of the columns left out. In a very narrow terminal, lines stay wider.
Cells fit(std::vector<Cells>& rows, int width, int name_least = kTaskNameLeast) {
  Cells left_out;
  if (width <= 0) return left_out;
  const auto excess = [&rows, width] { return line_width(rows) - width; };
  const auto shorten = [&rows, &excess](std::size_t column, int least) {
    const int kept = std::max(least, column_widths(rows)[column] - std::max(excess(), 0));
    for (Cells& cells : rows) cells[column] = cut(cells[column], kept);
  };
  Cells& titles = rows.front();
  if (titles.back() == kProgressTitle) shorten(titles.size() - 1, kProgressShort);
  shorten(0, kTaskNameShort);
  for (const std::string_view title : kLeftOutFirst) {
    while (excess() > 0) {
      const auto found = std::ranges::find(titles, title);
      if (found == titles.end()) break;
      // Memory and GPU memory have a column of this title each, right after their own.
      left_out.push_back(title == kReservedTitle ? fmt::format("{} {}", *std::prev(found), title)
                                                 : std::string(title));
      const auto column = found - titles.begin();
      for (Cells& cells : rows) cells.erase(cells.begin() + column);
    }
  }
  shorten(0, name_least);
  return left_out;
}

std::string name_of(const journal::TaskRow& row) {
  return cut(plain(row.group_name + "/" + row.id), kNameMax);
}

std::string_view word_for_state(RunState state) {
  switch (state) {
    case RunState::Running:
      return "running";
    case RunState::Stopping:
      return "stopping";
    case RunState::Suspended:
      return "suspended";
    case RunState::Idle:
      return "idle";
    case RunState::Ended:
      return "ended";
    case RunState::Died:
      return "died";
  }
  return "unknown";
}

Duration took(const StatusView& view) {
  return std::max(Duration{0}, view.now - view.execution.started);
}

/// The groups and their counts; without `zeros`, no count that is 0 in all groups.
std::vector<Cells> group_rows(const StatusView& view, bool zeros) {
  struct Count {
    std::string_view title;
    int journal::GroupRow::* count;
    bool always;
  };
  constexpr std::array<Count, 12> kCounts{
      {{.title = "TASKS", .count = &journal::GroupRow::tasks, .always = true},
       {.title = "FINISHED", .count = &journal::GroupRow::finished, .always = true},
       {.title = "OUT OF DATE", .count = &journal::GroupRow::out_of_date},
       {.title = "RUNNING", .count = &journal::GroupRow::running, .always = true},
       {.title = "LOST", .count = &journal::GroupRow::lost},
       {.title = "RETRYING", .count = &journal::GroupRow::retrying},
       {.title = "WAITING", .count = &journal::GroupRow::waiting, .always = true},
       {.title = "FAILED", .count = &journal::GroupRow::failed, .always = true},
       {.title = "SKIPPED", .count = &journal::GroupRow::skipped},
       {.title = "NOT NEEDED", .count = &journal::GroupRow::not_needed},
       {.title = "NOT SELECTED", .count = &journal::GroupRow::not_selected},
       {.title = "STOPPED", .count = &journal::GroupRow::stopped}}};
  std::vector<Cells> rows{{"GROUP", "STATE"}};
  for (const journal::GroupRow& group : view.groups) {
    rows.push_back({cut(plain(group.name), kNameMax), std::string(shown_phase(group))});
  }
  for (const Count& count : kCounts) {
    const bool any = std::ranges::any_of(
        view.groups, [&count](const journal::GroupRow& group) { return group.*count.count > 0; });
    const bool nothing_runs =
        view.state == RunState::Died && count.count == &journal::GroupRow::running;
    if (nothing_runs || (!any && !(zeros && count.always))) continue;
    rows[0].emplace_back(count.title);
    for (std::size_t i = 0; i < view.groups.size(); ++i) {
      rows[i + 1].push_back(with_commas(view.groups[i].*count.count));
    }
  }
  return rows;
}

std::string groups_text(const StatusView& view, int width) {
  std::vector<Cells> rows = group_rows(view, /*zeros=*/true);
  fit(rows, width);
  if (width > 0 && line_width(rows) > width) {
    rows = group_rows(view, /*zeros=*/false);
    fit(rows, width, kGroupNameLeast);
  }
  std::string text = "\n" + aligned(rows);
  for (const journal::GroupRow& group : view.groups) {
    if (!group.message.empty()) {
      text += fmt::format("{}: {}\n", plain(group.name),
                          plain(cause_text(group, group.message, view.run_directory)));
    } else if (!group.why_skipped.empty()) {
      text += fmt::format("{}: {} skipped: {}\n", plain(group.name), with_commas(group.skipped),
                          plain(cause_text(group, group.why_skipped, view.run_directory)));
    }
    if (group.out_of_date == 0) continue;
    const std::string retry =
        fmt::format("trainyard retry {} --cascade", text::shell_word(view.run_directory));
    text += fmt::format("{}: {}: {}\n", plain(group.name), out_of_date_text(group.out_of_date),
                        runs_again_text(retry, group.out_of_date));
  }
  return text;
}

/// "40 %  loss=0.31"; "-" when it said nothing.
std::string progress_text(const journal::TaskRow& row) {
  std::string text = row.progress ? fmt::format("{:.0f} %", *row.progress * 100) : "";
  for (const Field& field : read_fields(row.progress_values)) {
    if (field.kind == FieldKind::Nested) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", field.key,
                        show_field({.key = field.key}, &field));
  }
  return text.empty() ? "-" : cut(plain(text), kNameMax);
}

/// "'trainyard status runs/sweep --all'".
std::string status_command(const StatusView& view, std::string_view options) {
  return text::quoted_command(
      fmt::format("trainyard status {} {}", plain(text::shell_word(view.run_directory)), options));
}

std::string machine_name(std::string_view name) {
  return name.empty() ? "-" : cut(plain(name), kNameMax);
}

/// "lab1: 16 CPUs, 64 GB, GPU 0 (NVIDIA H100); gone: nothing was heard of it for 60 s". For a run
/// that has ended, only how its machines ended.
std::string machine_line(const journal::MachineRow& machine, const StatusView& view) {
  std::string text = fmt::format("{}: {}", machine_name(machine.name), machine_text(machine));
  const bool is_there = !machine.gone && is_monitored(view.state);
  if (machine.gone) text += machine.why.empty() ? "; gone" : "; gone: " + machine.why;
  if (is_there && machine.silent) {
    text += fmt::format("; unreachable for {}, no tasks start there",
                        to_text(std::max(view.now - *machine.silent, Duration{0})));
  }
  if (is_there && machine.until) {
    text += fmt::format("; available for another {}",
                        to_text(std::max(*machine.until - view.now, Duration{0})));
  }
  return plain(text);
}

/// Rows below a title.
struct Listing {
  std::string title;
  std::size_t most = 0;                  ///< The maximum number of rows.
  std::optional<std::int64_t> all = {};  ///< The number of rows and of others that are not known.
  std::string command = {};              ///< Shows the others.
};

/// The title, the first rows below it, and the number of the others. `line` makes the text of a row.
template <class Row, class Line>
std::string list_rows(const Listing& listing, const std::vector<Row>& rows, Line line) {
  if (rows.empty()) return {};
  std::string text = fmt::format("\n{}:\n", listing.title);
  const std::size_t shown = std::min(rows.size(), listing.most);
  for (std::size_t i = 0; i < shown; ++i) text += fmt::format("  {}\n", line(rows[i]));
  const auto more = listing.all.value_or(std::ssize(rows)) - static_cast<std::int64_t>(shown);
  if (more <= 0) return text;
  return text + fmt::format("  and {} more{}{}\n", with_commas(more),
                            listing.command.empty() ? "" : ": ", listing.command);
}

/// Empty for a single machine, which the first line names, unless there is more to say about it.
std::string machines_text(const StatusView& view) {
  const bool says_more = std::ranges::any_of(view.machines, [](const journal::MachineRow& row) {
    return row.gone || row.silent || row.until;
  });
  if (view.machines.size() < 2 && !says_more) return {};
  return list_rows(
      {.title = "machines", .most = kMachinesShown, .command = status_command(view, "--json")},
      view.machines, [&view](const journal::MachineRow& row) { return machine_line(row, view); });
}

void add_gpu_cells(const journal::TaskRow& row, bool caps, Cells& cells) {
  const bool some = !row.gpus.empty() && has_reserved(row);
  const bool whole = row.gpu_memory_requested == Bytes{};
  cells.push_back(some ? row.gpus : "-");
  // Nothing was measured there, or the driver does not say which process has it.
  cells.push_back(row.gpu_memory_now > Bytes{} ? to_text(row.gpu_memory_now) : "-");
  cells.push_back(!some ? "-" : whole ? "all" : to_text(row.gpu_memory_requested));
  if (caps) cells.push_back(some ? cap_text(row) : "-");
}

std::string running_text(const StatusView& view, int width) {
  if (view.running.empty() || !is_active(view.state)) return {};
  std::vector<Cells> rows{
      {"TASK", "STATUS", "ATTEMPT", "TIME", "MEMORY", std::string(kReservedTitle)}};
  const bool machines = view.machines.size() > 1;
  const bool progress = std::ranges::any_of(view.running, [](const journal::TaskRow& row) {
    return row.progress || !row.progress_values.empty();
  });
  const bool gpus = std::ranges::any_of(
      view.running, [](const journal::TaskRow& row) { return !row.gpus.empty(); });
  const bool caps = std::ranges::any_of(
      view.running, [](const journal::TaskRow& row) { return row.gpu_memory_max > Bytes{}; });
  if (machines) rows[0].emplace_back("MACHINE");
  if (gpus) rows[0].insert(rows[0].end(), {"GPU", "GPU MEMORY", std::string(kReservedTitle)});
  if (caps) rows[0].emplace_back("CAP");
  if (progress) rows[0].emplace_back(kProgressTitle);
  const std::size_t shown = std::min<std::size_t>(view.running.size(), kRunningShown);
  OtherCode other_code;
  for (std::size_t i = 0; i < shown; ++i) {
    const journal::TaskRow& row = view.running[i];
    const std::optional<Duration> so_far = duration_of(row, view.now);
    other_code.look_at(row);
    const std::string mark = row.newer_code.empty() ? "" : fmt::format(", {}", kOtherCode);
    rows.push_back({name_of(row), model::word_for(row.standing) + mark,
                    fmt::format("{}", row.attempt), so_far ? to_text(*so_far) : "-",
                    row.memory_now > Bytes{} ? to_text(row.memory_now) : "-",
                    has_reserved(row) ? to_text(row.memory_requested) : "-"});
    if (machines) rows.back().push_back(machine_name(row.machine));
    if (gpus) add_gpu_cells(row, caps, rows.back());
    if (progress) rows.back().push_back(progress_text(row));
  }
  int all = 0;
  for (const journal::GroupRow& group : view.groups) all += group.running + group.retrying;
  const Cells left_out = fit(rows, width);
  std::string text = "\n" + aligned(rows);
  if (!left_out.empty()) {
    text += fmt::format("{} left out ({}): {} shows all columns\n",
                        counted(std::ssize(left_out), "column"), fmt::join(left_out, ", "),
                        status_command(view, "| cat"));
  }
  if (const auto more = all - static_cast<int>(shown); more > 0) {
    text += fmt::format("and {} more: {}\n", with_commas(more), status_command(view, "--all"));
  }
  if (other_code.count() > 0) text += other_code.text() + "\n";
  return text;
}

/// "train/a: retry 1 of 2 in 49m40s: exit code 3".
std::string retrying_text(const StatusView& view) {
  if (view.state != RunState::Running) return {};
  std::vector<const journal::TaskRow*> rows;
  for (const journal::TaskRow& row : view.running) {
    if (!waits_for_retry(row) || row.standing.on_hold || row.message.empty()) continue;
    rows.push_back(&row);
  }
  return list_rows(
      {.title = "retrying", .most = kRetryingShown, .command = status_command(view, "--all")}, rows,
      [&view](const journal::TaskRow* row) {
        return fmt::format("{}: {}", name_of(*row), plain(message_at(*row, view.now)));
      });
}

/// Kinds of tasks of a group that wait for the same are one line.
std::vector<journal::WaitingReason> told_together(const std::vector<journal::WaitingReason>& all) {
  std::vector<journal::WaitingReason> lines;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (const journal::WaitingReason& one : all) {
    const auto [place, fresh] = known.try_emplace({one.group_name, one.reason}, lines.size());
    if (fresh) {
      lines.push_back(one);
    } else {
      lines[place->second].tasks += one.tasks;
    }
  }
  return lines;
}

std::string waiting_text(const StatusView& view) {
  if (view.state != RunState::Running) return {};
  return list_rows({.title = "waiting", .most = kReasonsShown}, told_together(view.waiting),
                   [&view](const journal::WaitingReason& row) {
                     std::string line = fmt::format("{}, {}: {}", plain(row.group_name),
                                                    counted(row.tasks, "task"), plain(row.reason));
                     const std::string help = help_text(row.help, view.run_directory);
                     return help.empty() ? line : line + "\n    " + plain(help);
                   });
}

std::string learning_text(const StatusView& view) {
  if (view.state != RunState::Running) return {};
  return list_rows({.title = "reserved as learned in this run", .most = kLearnedShown},
                   view.learned, [](const journal::LearnedRow& row) {
                     return fmt::format("{}: {}, from {}", plain(row.group_name),
                                        learned_text(row.memory, row.gpu_memory),
                                        taught_by_text(row.tasks));
                   });
}

std::string shared_text(const StatusView& view) {
  return list_rows({.title = "sharing GPUs, as measured", .most = kLearnedShown}, view.sharing,
                   [](const journal::SharingRow& row) {
                     return fmt::format("{}: {}", plain(row.group_name),
                                        model::sharing_text(row.measured));
                   });
}

/// A retry of some tasks ends as any run, and leaves the others STOPPED.
bool is_to_be_resumed(const StatusView& view) {
  return view.execution.how != run::kEnded ||
         std::ranges::any_of(view.groups, [](const auto& group) { return group.stopped > 0; });
}

std::string failed_text(const StatusView& view) {
  if (view.failed.empty()) return {};
  RetryAdvice advice;
  const auto line = [&](const journal::TaskRow& row) {
    advice.look_at(row);
    std::string text =
        fmt::format("{}: {}", plain(row.group_name + "/" + row.id), model::word_for(row.standing));
    if (!row.newer_code.empty()) text += fmt::format(", {} ({})", kOtherCode, plain(row.code));
    if (const auto after = duration_of(row)) text += " after " + to_text(*after);
    if (!row.message.empty()) text += ": " + plain(row.message);
    if (row.attempt == 0) return text;
    const std::string directory = view.run_directory + "/" + row.directory + "/";
    const std::optional<std::string> log =
        run::log_with_text({.stdout_path = directory + run::log_name("stdout", row.attempt),
                            .stderr_path = directory + run::log_name("stderr", row.attempt)},
                           sys::size_of_file);
    // The log is gone after a 'clean', and not there yet from another machine.
    return log && sys::size_of_file(*log) ? text + "\n    " + plain(*log) : text;
  };
  int all = 0;
  int skipped = 0;
  for (const journal::GroupRow& group : view.groups) {
    all += group.failed;
    skipped += group.skipped;
  }
  std::string text = list_rows({.title = "failed",
                                .most = kFailedShown,
                                .all = all,
                                .command = status_command(view, "--all")},
                               view.failed, line);
  if (view.execution.is_of_program()) return text;
  const ResumableRun resumable{.directory = view.run_directory,
                               .is_of_command = run::is_kept_job_path(view.execution.job_file),
                               .has_gpus = has_gpus(view.machines),
                               .has_skipped = skipped > 0};
  text += advice.text(resumable);
  // The first line of any other run says how it continues.
  const bool is_over = view.state == RunState::Ended && !is_to_be_resumed(view);
  return is_over ? text + advice.resume_text(resumable) : text;
}

std::string warned_text(const StatusView& view) {
  return list_rows(
      {.title = fmt::format("{} missing or changed", counted(view.warned_count, "result")),
       .most = kWarnedShown,
       .all = view.warned_count,
       .command = status_command(view, "--all --json")},
      view.warned, [&view](const journal::TaskRow& row) {
        return fmt::format("{}: {}", plain(row.group_name + "/" + row.id),
                           plain(result_warning(row, view.run_directory)));
      });
}

template <class Rows, class Print>
std::string json_list(const Rows& rows, Print print) {
  std::string text = "[";
  for (const auto& row : rows) {
    if (text.size() > 1) text += ',';
    text += print(row);
  }
  return text + "]";
}

}  // namespace

std::string run_line(std::optional<std::uint32_t> number, const std::string& run_directory) {
  const std::string directory = plain(run_directory);
  return number ? fmt::format("run {}: {}", *number, directory) : "run-dir: " + directory;
}

std::string status_header(const StatusView& view) {
  const std::string resumed = view.execution.number > 1 ? " (since it was last resumed)" : "";
  const std::string active_for = to_text(took(view)) + resumed;
  // Over all executions, as the table of the run: instants leave out the time in which nothing ran.
  const std::string after = to_text(view.now - Instant{});
  std::string resume = plain(view.queue_resumes);
  if (view.execution.is_of_program()) {
    resume = "run the same program to resume it";
  } else if (resume.empty()) {
    resume = "resume it with " + text::quoted_command("trainyard run --resume " +
                                                      plain(text::shell_word(view.run_directory)));
  }
  std::string text = plain(view.job) + ": ";
  switch (view.state) {
    case RunState::Running:
    case RunState::Stopping:
      text += fmt::format("{}active for {}, process {} on {}",
                          view.state == RunState::Stopping ? "stopping, " : "", active_for,
                          view.execution.yard_pid, plain(view.execution.host));
      break;
    case RunState::Suspended:
      text += fmt::format(
          "suspended: process {0} on {1}; running tasks continue. 'kill -CONT {0}' resumes it",
          view.execution.yard_pid, plain(view.execution.host));
      break;
    case RunState::Idle:
      text += fmt::format("idle: all tasks have ended; process {} on {} can add more",
                          view.execution.yard_pid, plain(view.execution.host));
      break;
    case RunState::Ended:
      text += fmt::format("{} after {}", plain(view.execution.how), after);
      if (is_to_be_resumed(view)) text += "; " + resume;
      break;
    case RunState::Died:
      // Its last sign of life is the last row of its journal, and no process has noted its death.
      text += fmt::format("died at least {} after its start; ", after);
      if (view.tasks_run_for > Duration{0} && !view.running.empty()) {
        text += fmt::format("its tasks are killed within {} (agent.lease, and the time to end); ",
                            to_text(view.tasks_run_for));
        // A run of the queue has no terminal.
        if (view.queue_resumes.empty()) resume += "; Ctrl-C then stops its tasks";
      }
      text += resume;
      break;
  }
  text += "\n" + run_line(view.number, view.run_directory) + "\n";
  if (!view.processes_left.empty()) {
    text += processes_left_text(view.processes_left) + ", which 'run --resume' kills first\n";
  }
  if (!view.needs_run_again.empty()) {
    text += fmt::format("{}: {}\n", kOutOfDate,
                        needs_run_again_text("this run", view.needs_run_again, view.runs_again));
  }
  const std::string planned = planned_time_text(view.execution);
  return planned.empty() ? text : text + "forecast: " + planned + "\n";
}

std::string status_text(const StatusView& view, int width) {
  std::string text = status_header(view);
  if (view.sample && is_monitored(view.state)) {
    text += "memory: ";
    // Not measured yet.
    if (view.sample->memory_of_tasks > Bytes{}) {
      text += to_text(view.sample->memory_of_tasks) + " used by tasks, ";
    }
    text += to_text(view.sample->memory_available) + " free now\n";
  }
  return text + groups_text(view, width) + machines_text(view) + running_text(view, width) +
         retrying_text(view) + waiting_text(view) + learning_text(view) + shared_text(view) +
         failed_text(view) + warned_text(view);
}

std::string status_json_open(const StatusView& view) {
  const auto task = [&view](const journal::TaskRow& row) { return json_of(row, view.now); };
  const auto as_json = [](const auto& row) { return json_of(row); };
  const std::string running = json_list(view.running, task);
  const std::array<std::pair<std::string_view, std::string>, 20> members{
      {{"schema", "1"},
       {"job", json_text(view.job)},
       {"run_directory", json_text(view.run_directory)},
       {"run_number", view.number ? fmt::format("{}", *view.number) : "null"},
       {"needs_run_again", fmt::format("[{}]", fmt::join(view.needs_run_again, ","))},
       {"state", json_text(word_for_state(view.state))},
       {"processes_left", fmt::format("[{}]", fmt::join(view.processes_left, ","))},
       {"elapsed_ms", fmt::format("{}", took(view).count())},
       {"execution", json_of(view.execution)},
       {"machine", view.sample ? json_of(*view.sample) : "null"},
       {"machines", json_list(view.machines, as_json)},
       {"groups", json_list(view.groups,
                            [&view](const auto& row) { return json_of(row, view.run_directory); })},
       {"waiting",
        json_list(view.waiting,
                  [&view](const auto& row) { return json_of(row, view.run_directory); })},
       {"learned", json_list(view.learned, as_json)},
       {"sharing", json_list(view.sharing, as_json)},
       {"running", is_active(view.state) ? running : "[]"},
       {"lost", is_active(view.state) ? "[]" : running},
       {"failed", json_list(view.failed, task)},
       {"warned_count", fmt::format("{}", view.warned_count)},
       {"warned", json_list(view.warned, task)}}};
  std::string text = "{";
  for (const auto& [name, value] : members) {
    text += fmt::format("{}\"{}\":{}", text.size() == 1 ? "" : ",\n", name, value);
  }
  return text;
}

std::string status_json(const StatusView& view) { return status_json_open(view) + "}\n"; }

}  // namespace trainyard::report
