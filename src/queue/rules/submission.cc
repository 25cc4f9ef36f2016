#include "queue/rules/submission.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <expected>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "model/priority.h"

namespace trainyard::queue {
namespace {

constexpr std::string_view kFirstLine = "trainyard submission 1";

/// Lines are "name=value" and end with a NUL, which no environment and no path has.
class Lines {
 public:
  void add(std::string_view name, std::string_view value) {
    text_ += fmt::format("{}={}", name, value);
    text_ += '\0';
  }
  template <class Number>
  void add_number(std::string_view name, Number number) {
    add(name, fmt::format("{}", number));
  }
  [[nodiscard]] std::string take() && { return std::move(text_); }

 private:
  std::string text_ = std::string(kFirstLine) + '\0';
};

/// Calls `line` with each name and value, until it has an error.
template <class Line>
Result<void> each_line(std::string_view text, Line line) {
  if (!text.starts_with(kFirstLine) || !text.ends_with('\0')) {
    return std::unexpected(Error{"it is not a submission, or it is truncated"});
  }
  text.remove_prefix(kFirstLine.size() + 1);
  while (!text.empty()) {
    const std::string_view whole = text.substr(0, text.find('\0'));
    const std::size_t sign = whole.find('=');
    if (sign == std::string_view::npos) return std::unexpected(Error{"a line has no name"});
    if (Result<void> read = line(whole.substr(0, sign), whole.substr(sign + 1)); !read) return read;
    text.remove_prefix(whole.size() + 1);
  }
  return {};
}

template <class Number>
Result<void> read_number(std::string_view name, std::string_view value, Number& into) {
  const auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), into);
  if (failed == std::errc{} && end == value.data() + value.size()) return {};
  return std::unexpected(Error{fmt::format("'{}' is not a number", name)});
}

Result<void> read_run_if(std::string_view value, model::RunIf& into) {
  for (const auto each : {model::RunIf::Success, model::RunIf::Failure, model::RunIf::Always}) {
    if (value != model::to_text(each)) continue;
    into = each;
    return {};
  }
  return std::unexpected(Error{"'if' is not a condition"});
}

Result<void> read_priority(std::string_view value, int& into) {
  const Result<int> priority = model::parse_priority(value);
  if (!priority) return std::unexpected(Error(priority.error()).in("'priority'"));
  into = *priority;
  return {};
}

/// "SOFT HARD"
Result<void> read_limit(std::string_view value, sys::ProcessLimits::Resource& into) {
  const std::size_t space = std::min(value.find(' '), value.size());
  if (Result<void> soft = read_number("limit", value.substr(0, space), into.soft); !soft) {
    return soft;
  }
  return read_number("limit", value.substr(std::min(space + 1, value.size())), into.hard);
}

IncompleteRun& incomplete_of(Submission& submission) {
  if (!submission.incomplete) submission.incomplete.emplace();
  return *submission.incomplete;
}

/// An unknown name is from a later release, and ignored.
Result<void> read_line(std::string_view name, std::string_view value, Submission& into) {
  if (name == "number") return read_number(name, value, into.number);
  if (name == "umask") return read_number(name, value, into.umask);
  if (name == "cpu") return read_number(name, value, into.limits.cpus.emplace_back());
  if (name == "nice") return read_number(name, value, into.limits.nice);
  if (name == "limit") return read_limit(value, into.limits.resources.emplace_back());
  if (name == "priority") return read_priority(value, into.priority);
  if (name == "submitted") return read_number(name, value, into.submitted_unix_ms);
  if (name == "needs") return read_number(name, value, into.needs.emplace_back());
  if (name == "if") return read_run_if(value, into.run_if);
  if (name == "set") into.settings.emplace_back(value);
  if (name == "env") into.environment.emplace_back(value);
  if (name == "memory") return read_number(name, value, into.memory.count);
  if (name == "cpus-milli") return read_number(name, value, into.cpus.milli);
  if (name == "gpu") into.needs_gpu = true;
  if (name == "again") into.runs_again = true;
  if (name == "run") into.run_directory = value;
  if (name == "job") into.job_file = value;
  if (name == "config") into.config_file = value;
  if (name == "typed") into.command_line = value;
  if (name == "directory") into.directory = value;
  if (name == "incomplete-ends") return read_number(name, value, incomplete_of(into).ends);
  if (name == "incomplete-finished") return read_number(name, value, incomplete_of(into).finished);
  if (name == "incomplete-resumes")
    return read_number(name, value, incomplete_of(into).resumes_unix_ms);
  if (name == "incomplete-no-start") incomplete_of(into).began = false;
  if (name == "incomplete-why") incomplete_of(into).why = value;
  return {};
}

/// The words for the cause in the file of a submission that never began.
constexpr std::array<std::pair<NoStart, std::string_view>, 5> kNoStartWords{
    {{NoStart::Refused, "refused"},
     {NoStart::DirectoryGone, "directory-gone"},
     {NoStart::Skipped, "skipped"},
     {NoStart::NotNeeded, "not-needed"},
     {NoStart::Removed, "removed"}}};

Result<void> read_no_start(std::string_view value, std::optional<NoStart>& into) {
  for (const auto& [no_start, word] : kNoStartWords) {
    if (value != word) continue;
    into = no_start;
    return {};
  }
  return std::unexpected(Error{"'no-start' is not a reason"});
}

Result<void> read_line(std::string_view name, std::string_view value, EndedSubmission& into) {
  if (name == "number") return read_number(name, value, into.number);
  if (name == "code") return read_number(name, value, into.exit_code);
  if (name == "ended") return read_number(name, value, into.ended_unix_ms);
  if (name == "no-start") return read_no_start(value, into.no_start);
  if (name == "resumed") into.is_resumed = true;
  if (name == "again") into.runs_again = true;
  if (name == "run") into.run_directory = value;
  if (name == "why") into.why = value;
  return {};
}

Result<void> read_line(std::string_view name, std::string_view value, SubmissionMark& into) {
  if (name == "submitted") return read_number(name, value, into.submitted_unix_ms);
  if (name == "name") into.name = value;
  return {};
}

template <class Record>
Result<Record> record_from(std::string_view text) {
  Record record;
  const Result<void> read =
      each_line(text, [&record](std::string_view name, std::string_view value) {
        return read_line(name, value, record);
      });
  if (!read) return std::unexpected(read.error());
  if (record.number == 0 || record.run_directory.empty()) {
    return std::unexpected(Error{"it does not contain the name of its run"});
  }
  return record;
}

/// The fields that a submission keeps after its end.
void add_lasting(const Submission& submission, Lines& lines) {
  lines.add("job", submission.job_file);
  lines.add("config", submission.config_file);
  lines.add("typed", submission.command_line);
  lines.add("directory", submission.directory);
  lines.add_number("priority", submission.priority);
  lines.add_number("submitted", submission.submitted_unix_ms);
  if (submission.needs_gpu) lines.add("gpu", "yes");
  lines.add_number("memory", submission.memory.count);
  lines.add_number("cpus-milli", submission.cpus.milli);
  lines.add("if", model::to_text(submission.run_if));
  for (const std::uint32_t needed : submission.needs) lines.add_number("needs", needed);
  for (const std::string& setting : submission.settings) lines.add("set", setting);
}

Lines lines_of(const EndedSubmission& ended) {
  Lines lines;
  lines.add_number("number", ended.number);
  lines.add("run", ended.run_directory);
  lines.add_number("code", ended.exit_code);
  lines.add_number("ended", ended.ended_unix_ms);
  for (const auto& [no_start, word] : kNoStartWords) {
    if (ended.no_start == no_start) lines.add("no-start", word);
  }
  lines.add("why", ended.why);
  if (ended.is_resumed) lines.add("resumed", "yes");
  if (ended.runs_again) lines.add("again", "yes");
  return lines;
}

}  // namespace

QueuedSubmission queued(const Submission& submission) {
  return {.number = submission.number,
          .priority = submission.priority,
          .needs = submission.needs,
          .run_if = submission.run_if,
          .needs_gpu = submission.needs_gpu,
          .memory = submission.memory,
          .cpus = submission.cpus};
}

bool has_begun(const EndedSubmission& ended) { return !ended.no_start || ended.runs_again; }

std::string to_text(const Submission& submission) {
  Lines lines;
  lines.add_number("number", submission.number);
  lines.add("run", submission.run_directory);
  add_lasting(submission, lines);
  lines.add_number("umask", submission.umask);
  lines.add_number("nice", submission.limits.nice);
  for (const std::uint32_t cpu : submission.limits.cpus) lines.add_number("cpu", cpu);
  for (const auto& [soft, hard] : submission.limits.resources) {
    lines.add("limit", fmt::format("{} {}", soft, hard));
  }
  for (const std::string& variable : submission.environment) lines.add("env", variable);
  if (submission.runs_again) lines.add("again", "yes");
  if (const auto& incomplete = submission.incomplete) {
    lines.add_number("incomplete-ends", incomplete->ends);
    lines.add_number("incomplete-finished", incomplete->finished);
    lines.add_number("incomplete-resumes", incomplete->resumes_unix_ms);
    if (!incomplete->began) lines.add("incomplete-no-start", "yes");
    lines.add("incomplete-why", incomplete->why);
  }
  return std::move(lines).take();
}

Result<Submission> submission_from(std::string_view text) { return record_from<Submission>(text); }

std::string to_text(const EndedSubmission& ended) { return lines_of(ended).take(); }

std::string to_text(const EndedSubmission& ended, const Submission& submission) {
  Lines lines = lines_of(ended);
  add_lasting(submission, lines);
  return std::move(lines).take();
}

Result<EndedSubmission> ended_from(std::string_view text) {
  return record_from<EndedSubmission>(text);
}

std::string to_text(const SubmissionMark& mark) {
  Lines lines;
  lines.add("name", mark.name);
  lines.add_number("submitted", mark.submitted_unix_ms);
  return std::move(lines).take();
}

SubmissionMark mark_from(std::string_view text) {
  SubmissionMark mark;
  const Result<void> read = each_line(text, [&mark](std::string_view name, std::string_view value) {
    return read_line(name, value, mark);
  });
  return read ? mark : SubmissionMark{};
}

}  // namespace trainyard::queue
