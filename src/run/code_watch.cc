#include "run/code_watch.h"

#include <algorithm>

namespace trainyard::run {

CodeWatch::CodeWatch(sys::EventLoop& loop, process::CodeAsker asker,
                     std::move_only_function<std::string(std::string)> without_secrets, Pace pace)
    : loop_(loop),
      asker_(std::move(asker)),
      without_secrets_(std::move(without_secrets)),
      pace_(pace) {
  loop_.watch_readable(asker_.descriptor(), [this] { hear(); });
}

CodeWatch::~CodeWatch() {
  if (!gone_) loop_.unwatch(asker_.descriptor());
  if (next_question_) loop_.cancel(*next_question_);
  if (patience_) loop_.cancel(*patience_);
}

std::optional<model::Code> CodeWatch::last_of(const std::string& directory) const {
  if (const auto found = roots_.find(directory); found != roots_.end()) {
    const std::optional<std::string>& root = found->second;
    const auto code = root ? by_root_.find(*root) : by_root_.end();
    return code == by_root_.end() ? std::nullopt : std::optional(code->second);
  }
  for (const auto& [root, code] : by_root_) {
    if (directory == root || directory.starts_with(root + "/")) return code;
  }
  return std::nullopt;
}

std::optional<model::Code> CodeWatch::started(model::AttemptKey key, const std::string& directory) {
  constexpr std::size_t kPathMax = 4096;
  const bool no_room = attempts_ >= kAttemptsMax || directory.size() >= kPathMax ||
                       (waiting_.size() >= kPlacesMax && !waiting_.contains(directory));
  if (gone_ || no_room) return std::nullopt;
  std::optional<model::Code> last = last_of(directory);
  waiting_[directory].push_back({.key = key, .last = last});
  ++attempts_;
  ask_soon();
  return last;
}

/// In another turn of the loop, when those that start now have.
void CodeWatch::ask_soon() {
  if (busy_ || gone_ || next_question_ || waiting_.empty()) return;
  const Duration wait = std::max(not_before_ - sys::EventLoop::now(), Duration{0});
  next_question_ = loop_.after(wait, [this] { ask(); });
}

void CodeWatch::ask() {
  next_question_.reset();
  question_.clear();
  while (!waiting_.empty() && question_.size() < process::CodeAsker::kDirectoriesMax) {
    auto starts = waiting_.extract(waiting_.begin());
    attempts_ -= starts.mapped().size();
    question_.push_back(starts.key());
    asked_.insert(std::move(starts));
  }
  busy_ = true;
  asked_at_ = sys::EventLoop::now();
  asker_.ask(question_);
  patience_ = loop_.after(pace_.patience, [this] {
    patience_.reset();
    give_up();
  });
}

void CodeWatch::hear() {
  const std::optional<process::CodeAsker::Answer> answer = asker_.hear();
  if (answer && busy_) {
    const Duration now = sys::EventLoop::now();
    constexpr int kShare = 20;
    not_before_ = now + std::clamp(kShare * (now - asked_at_), pace_.between, pace_.between_max);
    busy_ = false;
    const std::optional<sys::EventLoop::TimerId> patience = std::exchange(patience_, std::nullopt);
    if (patience) loop_.cancel(*patience);
    for (std::size_t i = 0; i < question_.size() && i < answer->size(); ++i) {
      conclude(question_[i], (*answer)[i]);
    }
    asked_.clear();
  }
  if (asker_.is_gone()) {
    gone_ = true;
    loop_.unwatch(asker_.descriptor());
    give_up();
    for (const auto& [directory, starts] : std::exchange(waiting_, {})) {
      asked_[directory] = starts;
    }
    attempts_ = 0;
    give_up();
    return;
  }
  ask_soon();
}

/// No answer comes, or none for a long time: the code of attempts that start meanwhile is not known
/// either.
void CodeWatch::give_up() {
  by_root_.clear();
  roots_.clear();
  for (const auto& [directory, starts] : std::exchange(asked_, {})) {
    model::CodeFound unknown;
    for (const Started& it : starts) {
      if (it.last) unknown.attempts.push_back(it.key);
    }
    if (!unknown.attempts.empty() && listener_) listener_(std::move(unknown));
  }
}

void CodeWatch::conclude(const std::string& directory,
                         const std::optional<process::FoundCode>& found) {
  if (roots_.size() >= kPlacesMax) roots_.clear();
  if (by_root_.size() >= kPlacesMax) by_root_.clear();
  model::CodeFound result;
  std::optional<std::string>& root = roots_[directory];
  root.reset();
  bool is_news = false;
  if (found) {
    result.code = found->code;
    root = found->code.root;
    by_root_[*root] = found->code;
    is_news = said_.size() < kCodesMax && said_.insert(found->code).second;
  }
  for (const Started& it : asked_[directory]) {
    if (it.last != result.code) result.attempts.push_back(it.key);
  }
  if (!listener_ || (result.attempts.empty() && !is_news)) return;
  if (found) result.diff = without_secrets_(found->diff);
  listener_(std::move(result));
}

}  // namespace trainyard::run
