#include "tell/notice.h"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/duration_text.h"
#include "base/match.h"
#include "base/utf8.h"
#include "report/terminal_text.h"
#include "text/shell_quote.h"

namespace trainyard::tell {
namespace {

/// Slack takes `<!channel>`, `<@U1>` and `<#C1>` for somebody who is called.
std::string calling_nobody(std::string_view text) {
  std::string safe;
  for (std::size_t i = 0; i < text.size(); ++i) {
    safe += text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : ' ';
    if (text[i] == '<' && (next == '!' || next == '@' || next == '#')) safe += ' ';
  }
  return safe;
}

std::string short_text(std::string_view text) {
  const std::string valid = valid_utf8(text);
  const std::string_view kept = utf8_prefix(valid, kMessageMax);
  return kept.size() < valid.size() ? std::string(kept) + "..." : valid;
}

std::string name_of(const RunName& run) {
  return run.number ? fmt::format("{} (run {})", run.job, *run.number) : run.job;
}

/// "17 of 18 tasks finished, 1 failed, 3 waiting".
std::string counts_text(const Counts& counts) {
  std::string text = fmt::format("{} of {} finished", report::with_commas(counts.finished),
                                 report::counted(counts.tasks, "task"));
  for (const auto& [count, word] :
       {std::pair{counts.failed, "failed"}, std::pair{counts.skipped, "skipped"},
        std::pair{counts.stopped, "stopped"}, std::pair{counts.running, "running"},
        std::pair{counts.waiting(), "waiting"}}) {
    if (count > 0) text += fmt::format(", {} {}", report::with_commas(count), word);
  }
  return text;
}

nlohmann::ordered_json counts_json(const Counts& counts) {
  return {{"total", counts.tasks},      {"finished", counts.finished}, {"failed", counts.failed},
          {"skipped", counts.skipped},  {"stopped", counts.stopped},   {"running", counts.running},
          {"waiting", counts.waiting()}};
}

std::string_view ended_words(Outcome outcome) {
  static constexpr std::array<std::string_view, 5> kWords{
      "has finished", "has ended, and not all tasks have finished", "was interrupted",
      "has stopped and can be resumed", "has died"};
  return kWords.at(static_cast<std::size_t>(outcome));
}

std::string failed_text(const FirstFailure& it) {
  return fmt::format("{} failed: {}{}{}", it.task, it.how, it.message.empty() ? "" : ": ",
                     it.message);
}

std::string what_happened(const Occasion& occasion) {
  return match(
      occasion, [](const FirstFailure& it) { return failed_text(it); },
      [](const NothingRuns& it) {
        return fmt::format("nothing has run for {}{}{}", to_text(it.since),
                           it.reason.empty() ? "" : ": ", it.reason);
      },
      [](const Ended& it) { return std::string(ended_words(it.outcome)); },
      [](const NotStarted& it) { return "did not start: " + it.reason; });
}

bool goes_on_by_resume(const Occasion& occasion) {
  const auto* const ended = std::get_if<Ended>(&occasion);
  return ended != nullptr && ended->outcome != Outcome::Finished &&
         ended->outcome != Outcome::Failed;
}

std::string_view event_of(const Occasion& occasion) {
  return match(
      occasion, [](const FirstFailure&) { return "first-failure"; },
      [](const NothingRuns&) { return "nothing-runs"; }, [](const Ended&) { return "end"; },
      [](const NotStarted&) { return "not-started"; });
}

}  // namespace

std::string_view word_of(Outcome outcome) {
  constexpr std::array<std::string_view, 5> kWords{"finished", "failed", "interrupted", "not-done",
                                                   "died"};
  return kWords.at(static_cast<std::size_t>(outcome));
}

std::string title_of(const Notice& notice) {
  const std::string what = match(
      notice.occasion, [](const FirstFailure& it) { return ": " + it.task + " failed"; },
      [](const NothingRuns& it) { return ": nothing has run for " + to_text(it.since); },
      [](const Ended& it) { return " " + std::string(ended_words(it.outcome)); },
      [](const NotStarted&) { return std::string(" did not start"); });
  return calling_nobody(short_text(name_of(notice.run) + what));
}

std::string text_of(const Notice& notice) {
  const bool is_of_run = std::holds_alternative<Ended>(notice.occasion) ||
                         std::holds_alternative<NotStarted>(notice.occasion);
  std::string text =
      fmt::format("{} on {}{}{}{}", name_of(notice.run), notice.run.host, is_of_run ? " " : ": ",
                  short_text(what_happened(notice.occasion)),
                  notice.counts ? "\n" + counts_text(*notice.counts) : std::string());
  if (goes_on_by_resume(notice.occasion)) {
    text += "\nresume it with " + text::quoted_command("trainyard run --resume " +
                                                       text::shell_word(notice.run.directory));
  }
  return calling_nobody(valid_utf8(text));
}

std::string json_of(const Notice& notice) {
  nlohmann::ordered_json json;
  json["text"] = text_of(notice);
  json["title"] = title_of(notice);
  json["event"] = event_of(notice.occasion);
  json["job"] = valid_utf8(notice.run.job);
  json["run"] = nullptr;
  if (notice.run.number) json["run"] = *notice.run.number;
  json["run_dir"] = valid_utf8(notice.run.directory);
  json["host"] = valid_utf8(notice.run.host);
  json["tasks"] = nullptr;
  if (notice.counts) json["tasks"] = counts_json(*notice.counts);
  match(
      notice.occasion,
      [&json](const FirstFailure& it) {
        json["task"] = valid_utf8(it.task);
        json["how"] = it.how;
        json["end"] = it.end;
        json["message"] = short_text(it.message);
      },
      [&json](const NothingRuns& it) {
        json["seconds"] = it.since.count() / 1000;
        json["cause"] = nullptr;
        if (!it.cause.empty()) json["cause"] = it.cause;
        json["reason"] = short_text(it.reason);
      },
      [&json](const Ended& it) {
        json["outcome"] = word_of(it.outcome);
        json["exit_code"] = nullptr;
        if (it.exit_code) json["exit_code"] = *it.exit_code;
      },
      [&json](const NotStarted& it) { json["reason"] = short_text(it.reason); });
  return json.dump();
}

}  // namespace trainyard::tell
