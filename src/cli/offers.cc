#include "cli/offers.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "base/utf8.h"
#include "cli/console.h"
#include "cli/find_run.h"
#include "cli/known_runs.h"
#include "cli/value_kinds.h"
#include "journal/reader.h"
#include "report/result_table.h"
#include "report/task_state.h"
#include "report/terminal_text.h"
#include "run/run_directory.h"
#include "run/run_numbers.h"
#include "settings/configuration.h"
#include "sys/environment.h"
#include "sys/files.h"

namespace trainyard::cli {
namespace {

/// Number of runs that are offered, the newest ones.
constexpr std::size_t kRunsMax = 20;
/// Number of tasks that are read to find the columns of a run.
constexpr std::int64_t kRowsForColumns = 100;

/// The path behind a word: its beginning may stand for a home directory.
std::string real_path(const std::string& path) {
  const std::optional<std::string> home = sys::variable("HOME");
  return home && path.starts_with("~/") ? *home + path.substr(1) : path;
}

bool has_journal(const std::string& directory) {
  std::error_code ignored;
  return std::filesystem::exists(run::journal_path(directory), ignored);
}

/// Makes the completions of one word.
class OfferMaker {
 public:
  explicit OfferMaker(const Typed& typed) : typed_(typed) {}

  void add(std::string text, std::string about = {}) {
    if (text.starts_with(typed_.word)) {
      offers_.list.push_back({.text = std::move(text), .about = std::move(about)});
    }
  }
  void add_files() { offers_.files = true; }
  void add_paths();
  void add_runs();
  void add_tasks();
  void add_settings();
  void add_columns();

  Offers finish() { return std::move(offers_); }

 private:
  void add_states();
  void add_names(const std::string& run, const std::string& before);
  [[nodiscard]] std::optional<std::string> run_before_slash() const;
  [[nodiscard]] bool names_a_run() const;
  [[nodiscard]] Result<std::string> run_that_is_meant() const;

  const Typed& typed_;
  Offers offers_;
};

/// Directories and job files; a directory with a run in it is a whole word.
void OfferMaker::add_paths() {
  const std::size_t slash = typed_.word.rfind('/');
  const std::string before = slash == std::string::npos ? "" : typed_.word.substr(0, slash + 1);
  const bool hidden = typed_.word.substr(before.size()).starts_with('.');
  const std::string place = before.empty() ? "." : real_path(before);
  for (const std::string& name : sys::names_in(place)) {
    if (name.starts_with('.') && !hidden) continue;
    std::string text = before + name;
    if (!text.starts_with(typed_.word)) continue;
    std::error_code ignored;
    const std::string path = fmt::format("{}/{}", place, name);
    if (name.ends_with(".yaml") || name.ends_with(".yml")) {
      add(std::move(text));
    } else if (std::filesystem::is_directory(path, ignored)) {
      add(has_journal(path) ? std::move(text) : text + "/");
    }
  }
}

/// By numbers and names, and where a path is typed, by this.
void OfferMaker::add_runs() {
  if (!typed_.word.empty()) add_paths();
  const Result<run::RunNumbers> numbers = run::RunNumbers::of_this_user();
  if (!numbers) return;
  std::size_t looked_at = 0;
  for (const run::RunNumbers::Numbered& run : numbers->all()) {
    const std::string number = fmt::format("{}", run.number);
    const std::string name = run.directory.substr(run.directory.rfind('/') + 1);
    if (!number.starts_with(typed_.word) && !name.starts_with(typed_.word)) continue;
    std::error_code ignored;
    if (!std::filesystem::is_directory(run.directory, ignored)) continue;
    const std::string seen = seen_from_here(run.directory);
    add(number, seen);
    add(name, seen);
    if (++looked_at == kRunsMax) return;
  }
}

void OfferMaker::add_states() {
  for (const std::string_view state : report::task_state_words()) add(fmt::format(":{}", state));
}

/// "46/" and "runs/digits/" in a word that continues with tasks.
std::optional<std::string> OfferMaker::run_before_slash() const {
  const std::string& word = typed_.word;
  for (std::size_t slash = word.rfind('/'); slash != std::string::npos && slash > 0;
       slash = word.rfind('/', slash - 1)) {
    const std::string head = word.substr(0, slash);
    std::error_code ignored;
    const std::string path = real_path(head);
    if (has_journal(path) || std::filesystem::is_regular_file(path, ignored) ||
        !known_runs(head).empty()) {
      return word.substr(0, slash + 1);
    }
  }
  return std::nullopt;
}

/// Whether an earlier word names a run.
bool OfferMaker::names_a_run() const {
  return !typed_.run_directory.empty() ||
         std::ranges::any_of(typed_.before, [](const std::string& word) {
           return !word.starts_with(':') && find_run(real_path(word)).has_value();
         });
}

Result<std::string> OfferMaker::run_that_is_meant() const {
  if (!typed_.run_directory.empty()) return find_run(real_path(typed_.run_directory));
  for (const std::string& word : typed_.before) {
    if (word.starts_with(':')) continue;
    if (Result<std::string> run = find_run(real_path(word))) return run;
  }
  return find_run({});
}

/// The tasks of a run, after the word's beginning `before`: their ids, with the group if the word
/// has one; also the groups if there are several.
void OfferMaker::add_names(const std::string& run, const std::string& before) {
  Result<journal::JournalReader> reader = journal::JournalReader::open(run::journal_path(run));
  if (!reader) return;
  const std::string rest = typed_.word.substr(before.size());
  const bool with_group = rest.contains('/');
  std::set<std::string, std::less<>> groups;
  static_cast<void>(reader->names([&](std::string_view group, std::string_view id) {
    if (!groups.contains(group)) groups.emplace(group);
    if (!with_group && id.starts_with(rest)) add(fmt::format("{}{}", before, id));
    if (with_group && rest.starts_with(group)) add(fmt::format("{}{}/{}", before, group, id));
    return true;
  }));
  if (with_group || groups.size() < 2) return;
  for (const std::string& group : groups) add(fmt::format("{}{}/", before, group));
}

void OfferMaker::add_tasks() {
  if (typed_.word.starts_with(':')) return add_states();
  if (const std::optional<std::string> before = run_before_slash()) {
    const Result<std::string> run = find_run(real_path(before->substr(0, before->size() - 1)));
    if (run) add_names(*run, *before);
    return;
  }
  if (const Result<std::string> run = run_that_is_meant()) add_names(*run, "");
  if (!names_a_run()) add_runs();
}

void OfferMaker::add_settings() {
  for (const settings::SettingInfo& setting : settings::settings()) {
    const std::string_view about = setting.description;
    add(fmt::format("{}=", setting.key), std::string(about.substr(0, about.find('\n'))));
  }
}

/// The typed text before the last comma stays, and so does the sign of a sort column.
void OfferMaker::add_columns() {
  const Result<std::string> run = run_that_is_meant();
  if (!run) return;
  Result<journal::JournalReader> reader = journal::JournalReader::open(run::journal_path(*run));
  if (!reader) return;
  report::ResultRows rows;
  static_cast<void>(
      reader->tasks({.at_most = kRowsForColumns}, [&rows](const journal::TaskRow& row) {
        rows.add("", row);
        return true;
      }));
  const std::size_t comma = typed_.word.rfind(',');
  const std::string before = comma != std::string::npos     ? typed_.word.substr(0, comma + 1)
                             : typed_.word.starts_with('-') ? "-"
                                                            : "";
  const report::ResultTable table = std::move(rows).table();
  for (const report::ResultColumn& column : table.columns) add(before + column.name);
}

void add_words(std::string_view words, OfferMaker& maker) {
  while (!words.empty()) {
    const std::size_t bar = std::min(words.find('|'), words.size());
    const std::string_view word = words.substr(0, bar);
    const auto is_small = [](char byte) { return byte >= 'a' && byte <= 'z'; };
    // One in capitals names a kind of value.
    if (std::ranges::any_of(word, is_small)) maker.add(std::string(word));
    words.remove_prefix(std::min(bar + 1, words.size()));
  }
}

/// A text up to the end of its next part.
std::string next_part(const std::string& text, std::size_t typed) {
  const std::size_t end = text.find_first_of(",/", typed);
  return end == std::string::npos ? text : text.substr(0, end + 1);
}

/// The longest beginnings of sorted texts of which there are no more than may be shown.
std::vector<std::string> beginnings(const std::vector<std::string>& texts, std::size_t typed) {
  std::vector<std::string> kept;
  for (std::size_t length = typed + 1;; ++length) {
    std::vector<std::string> next;
    bool longer = false;
    for (const std::string& text : texts) {
      longer = longer || text.size() > length;
      std::string begins(utf8_prefix(text, length));
      if (next.empty() || next.back() != begins) next.push_back(std::move(begins));
      if (next.size() > Offers::kMax) break;
    }
    if (next.size() > Offers::kMax) break;
    kept = std::move(next);
    if (!longer) break;
  }
  // More than kMax texts differ in the character behind the typed ones: the first are kept whole.
  if (kept.empty()) kept.assign(texts.begin(), texts.begin() + Offers::kMax);
  return kept;
}

}  // namespace

Offers offers_of(std::string_view kind, const Typed& typed) {
  OfferMaker maker(typed);
  if (kind == value_kinds::kFile || kind == value_kinds::kDirectory) maker.add_files();
  if (kind == value_kinds::kJobFile) maker.add_paths();
  if (kind == value_kinds::kRun) maker.add_runs();
  if (kind == value_kinds::kTasks) maker.add_tasks();
  if (kind == value_kinds::kSetting) maker.add_settings();
  if (kind == value_kinds::kColumn || kind == value_kinds::kKeyColumns ||
      kind == value_kinds::kPivot) {
    maker.add_columns();
  }
  if (kind.contains('|')) add_words(kind, maker);
  return maker.finish();
}

std::vector<Offer> shown_offers(std::vector<Offer> offers, std::string_view word) {
  std::erase_if(offers, [word](const Offer& offer) {
    return !offer.text.starts_with(word) || report::plain(offer.text) != offer.text;
  });
  std::ranges::sort(offers, {}, [](const Offer& it) { return std::tie(it.text, it.about); });
  const auto again = std::ranges::unique(offers, {}, &Offer::text);
  offers.erase(again.begin(), again.end());
  if (offers.size() <= Offers::kMax) return offers;
  std::vector<std::string> texts;
  texts.reserve(offers.size());
  for (const Offer& offer : offers) {
    std::string part = next_part(offer.text, word.size());
    if (texts.empty() || texts.back() != part) texts.push_back(std::move(part));
  }
  if (texts.size() > Offers::kMax) texts = beginnings(texts, word.size());
  std::vector<Offer> shown;
  shown.reserve(texts.size());
  for (std::string& text : texts) shown.push_back({.text = std::move(text), .about = {}});
  return shown;
}

}  // namespace trainyard::cli
