#include "queue/rules/returns.h"

#include <algorithm>
#include <expected>
#include <utility>

#include <fmt/format.h>

#include "base/list_text.h"

namespace trainyard::queue {
namespace {

/// The skip that the queue would decide for a submission that is put back; nothing if none.
std::optional<SkippedSubmission> skip_of(const Submission& submission, const FateOf& fate_of) {
  QueueChoice choice = choose_next({queued(submission)}, {}, fate_of);
  if (choice.skip.empty()) return std::nullopt;
  return std::move(choice.skip.front());
}

}  // namespace

Result<void> check_needs(const Submission& submission, const ReturnFacts& facts) {
  const auto skipped = skip_of(submission, facts.fate_of);
  if (!skipped) return {};
  if (skipped->needed == 0) {
    return std::unexpected(Error{fmt::format("run {}: {}", submission.number, skipped->why)});
  }
  const std::string why = fmt::format("run {} {}", submission.number, skipped->why);
  // The run that it needs may have been skipped itself: then the one to retry comes before that.
  std::vector<std::uint32_t> runs{submission.number};
  for (std::uint32_t needed = skipped->needed; needed != 0;) {
    runs.push_back(needed);
    if (facts.is_directory_gone(needed)) {
      return std::unexpected(Error{fmt::format(
          "{}, and the directory of run {} is gone: submit {} again", why, needed,
          runs.size() == 2 ? "both" : "runs " + ranges_of({runs.rbegin(), runs.rend()}))});
    }
    const std::optional<Submission> kept = facts.without_start(needed);
    const auto behind = kept ? skip_of(*kept, facts.fate_of) : std::nullopt;
    needed = behind ? behind->needed : 0;
  }
  // A retry takes failed tasks only, and an interrupted run may have none.
  const std::string resume = facts.resume_command(runs.back());
  // The first submission that goes back only if it is retried itself.
  const auto apart = resume.empty() ? std::ranges::find_if(runs.rbegin() + 1, runs.rend(),
                                                           std::not_fn(facts.is_in_cascade))
                                    : runs.rbegin() + 1;
  if (apart != runs.rend()) {
    const std::vector<std::uint32_t> before(runs.rbegin(), apart);
    const std::vector<std::uint32_t> behind(apart, runs.rend());
    const auto shown = [](const std::vector<std::uint32_t>& some) {
      return some.size() == 1 ? fmt::format("run {}", some.front()) : "runs " + ranges_of(some);
    };
    const auto cascade = [](const auto& some) { return some.size() == 1 ? "" : " --cascade"; };
    const std::string first = resume.empty()
                                  ? fmt::format("'trainyard retry {}{}' retries {}", before.front(),
                                                cascade(before), shown(before))
                                  : fmt::format("{} resumes {}", resume, shown(before));
    return std::unexpected(
        Error{fmt::format("{}: {}, then 'trainyard retry {}{}' puts {} back into your queue", why,
                          first, behind.front(), cascade(behind), shown(behind))});
  }
  return std::unexpected(Error{fmt::format("{}: 'trainyard retry {} --cascade' runs {} again", why,
                                           runs.back(), runs.size() == 2 ? "both" : "them")});
}

Returns choose_returns(RetriedRun retried, std::vector<Submission> behind,
                       const ReturnFacts& facts) {
  Returns returns;
  const auto goes_back = [&](std::uint32_t needed) {
    return std::ranges::count(returns.submissions, needed, &Submission::number) > 0;
  };
  const auto runs_again = [&](std::uint32_t needed) {
    return goes_back(needed) || (needed == retried.number && retried.runs_again);
  };
  ReturnFacts then = facts;
  then.fate_of = [&](std::uint32_t needed) {
    const bool is_to_end = needed == retried.number || goes_back(needed);
    return is_to_end ? Fate::NotEnded : facts.fate_of(needed);
  };
  for (Submission& submission : behind) {
    submission.runs_again = facts.has_run(submission);
    const bool is_out_of_date =
        submission.runs_again &&
        (std::ranges::any_of(submission.needs, runs_again) || facts.needs_ran_again(submission));
    // Its directory was cleaned, or has been run in since.
    if (!is_out_of_date && !facts.has_no_start(submission)) continue;
    // Another run that it needs may not have succeeded either.
    if (Result<void> possible = check_needs(submission, then); !possible) {
      returns.refused.push_back(std::move(possible.error()));
    } else {
      returns.submissions.push_back(std::move(submission));
    }
  }
  return returns;
}

}  // namespace trainyard::queue
