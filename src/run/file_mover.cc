#include "run/file_mover.h"

#include <algorithm>
#include <array>
#include <expected>
#include <filesystem>
#include <ranges>
#include <system_error>

#include <fmt/format.h>

#include "sys/files.h"
#include "sys/token.h"

namespace trainyard::run {
namespace {

constexpr Duration kPauseMax{10'000};
/// Interval at which the output of the running program is read.
constexpr Duration kDrainEvery{1'000};
/// rsync prints a line of its own behind the cause.
constexpr std::string_view kOwnLine = "rsync error: ";
constexpr std::string_view kWarningOfSsh = "Warning: ";
constexpr std::size_t kPrintedMax = std::size_t{1} << 16;

constexpr int kDone = 0;
constexpr int kSomeCannotBe = 23;  ///< All the others have been moved.
constexpr int kSomeVanished = 24;  ///< While it looked at them: temporary files.
constexpr int kNotFound = 127;
constexpr int kOfSsh = 255;  ///< ssh could not connect, or was cut.

/// The files of earlier attempts may be on other machines, and those here may be incomplete.
constexpr std::array<std::string_view, 6> kOfAttempts{
    "stdout.log", "stdout.*.log", "stderr.log", "stderr.*.log", "result.json", "result.*.json"};

/// True if a program that moves files by ssh exited because it could not reach the host.
bool is_out_of_reach(int exit_code) {
  // The others are rsync's own: socket, stream, and its two timeouts.
  constexpr std::array<int, 5> kCodes{kOfSsh, 10, 12, 30, 35};
  return std::ranges::find(kCodes, exit_code) != kCodes.end();
}

}  // namespace

std::string why_it_moved_nothing(std::string_view errors, int exit_code) {
  const auto is_cause = [](std::string_view line) {
    return !line.empty() && !line.starts_with(kOwnLine) && !line.starts_with(kWarningOfSsh);
  };
  while (!errors.empty()) {
    const std::string_view line = errors.substr(0, errors.find('\n'));
    // The first message is the cause; its consequences follow.
    if (is_cause(line)) return std::string(line);
    errors.remove_prefix(std::min(line.size() + 1, errors.size()));
  }
  return fmt::format("rsync exited with code {}", exit_code);
}

std::string pattern_of(std::string_view path) {
  constexpr std::string_view kSpecial = "*?[\\";
  const bool has_wildcards = path.find_first_of("*?[") != std::string_view::npos;
  std::string pattern = "/";
  for (const char c : path) {
    // Without a wildcard in it rsync takes a backslash for itself.
    if (has_wildcards && kSpecial.contains(c)) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

void FileMover::push(Push how, std::vector<std::string> directories, Done done) {
  const Way way = how == Push::Over     ? Way::Over
                  : how == Push::Mirror ? Way::Mirror
                                        : Way::KeepNewer;
  add({.way = way, .directories = std::move(directories), .done = std::move(done)});
}

void FileMover::pull(std::string directory, Done done) {
  add({.way = Way::Here, .directories = {std::move(directory)}, .done = std::move(done)});
}

void FileMover::pull_the_rest(const std::vector<std::string>& but_for, Done done) {
  std::string rules = "/machines.proof\n";
  for (const std::string& directory : but_for) rules += pattern_of(directory) + "\n";
  rules_ = fmt::format("{}/trainyard.rest-{}", options_.place.here, sys::random_token());
  const Result<void> written = sys::write_file_atomically(rules_, rules);
  if (!written) return done(written);
  add({.way = Way::TheRest, .directories = {}, .done = std::move(done)});
}

FileMover::~FileMover() {
  forget();
  std::error_code ignored;
  if (!rules_.empty()) std::filesystem::remove(rules_, ignored);
}

void FileMover::add(Move move) {
  waiting_.push_back(std::move(move));
  begin();
}

void FileMover::forget() {
  waiting_.clear();
  moving_.clear();
  stop_program();
}

void FileMover::forget_pulls() {
  std::erase_if(waiting_, [](const Move& move) { return move.way == Way::Here; });
  if (moving_.empty() || moving_.front().way != Way::Here) return;
  moving_.clear();
  stop_program();
  begin();
}

void FileMover::stop_program() {
  stream_.reset();
  program_.reset();
  stop_timer();
}

void FileMover::stop_timer() {
  if (timer_) loop_.cancel(*timer_);
  timer_.reset();
}

/// Files for the same direction are moved together, unless files for another direction are between
/// them.
void FileMover::begin() {
  if (!moving_.empty() || waiting_.empty()) return;
  std::size_t directories = 0;
  do {
    moving_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    directories += moving_.back().directories.size();
  } while (!waiting_.empty() && waiting_.front().way == moving_.front().way &&
           !waiting_.front().alone && !moving_.front().alone &&
           directories + waiting_.front().directories.size() <= kTogetherMax);
  tries_ = 0;
  pause_ = options_.again_after;
  go();
}

/// Directories and what is in them have the same names on both sides.
void FileMover::add_rules(std::vector<std::string>& words) const {
  const Way way = moving_.front().way;
  if (way == Way::Mirror || way == Way::Here) words.emplace_back("--delete");
  if (way == Way::KeepNewer) words.emplace_back("--update");
  if (way == Way::Here) words.emplace_back("--ignore-missing-args");
  if (way != Way::Here && way != Way::KeepNewer) return;
  // "P": it is not deleted where it has no other side.
  const char* const rule = way == Way::Here ? "--filter=P " : "--exclude=";
  for (const Move& move : moving_) {
    for (const std::string& directory : move.directories) {
      for (const std::string_view name : kOfAttempts) {
        const bool is_pattern = name.contains('*');
        const std::string path = directory + "/" + std::string(is_pattern ? "*" : name);
        std::string pattern = pattern_of(path);
        if (is_pattern) pattern.replace(pattern.size() - 2, 2, name);
        words.push_back(rule + pattern);
      }
    }
  }
}

std::vector<std::string> FileMover::command() const {
  const Way way = moving_.front().way;
  const bool comes = way == Way::Here || way == Way::TheRest;
  const std::string here = options_.place.here + "/";
  const std::string there = options_.host + ":" + options_.place.there + "/";
  const std::string& from = comes ? there : here;
  std::vector<std::string> words = options_.rsync;
  words.insert(words.end(), {"--perms", "--sparse"});
  if (way == Way::TheRest) {
    words.insert(words.end(), {"--ignore-existing", "--exclude-from=" + rules_, from, here});
    return words;
  }
  words.insert(words.end(), {"--relative", "--no-implied-dirs"});
  add_rules(words);
  // Names from "/./" on are the same on both sides.
  for (const Move& move : moving_) {
    for (const std::string& directory : move.directories) {
      words.push_back(fmt::format("{}./{}", from, directory));
    }
  }
  words.push_back(comes ? here : there);
  return words;
}

void FileMover::go() {
  ++tries_;
  Result<sys::StreamProgram> program = sys::StreamProgram::start(command());
  if (!program) return tell(std::unexpected(std::move(program.error())));
  program_.emplace(std::move(*program));
  stream_ = std::make_unique<sys::LineStream>(
      loop_, program_->take_stream(),
      sys::LineStream::Options{.line_max = kPrintedMax,
                               .on_line = [](std::string_view) {},
                               .on_end = [this](const std::string&) { end(); }});
  watch();
}

/// Output that is not read would block the program some day. The last of it is kept.
void FileMover::watch() {
  timer_ = loop_.after(kDrainEvery, [this] {
    if (program_) static_cast<void>(program_->last_errors());
    watch();
  });
}

void FileMover::end() {
  stop_timer();
  stream_.reset();
  if (!program_) return;
  // The program closes its descriptors a moment before it has exited. A program that does not exit
  // then is killed.
  const int code = program_->exit_code(kDrainEvery).value_or(kOfSsh);
  const std::string errors = program_->last_errors();
  program_.reset();
  if (code == kDone || code == kSomeVanished) return tell({});
  const std::string why = why_it_moved_nothing(errors, code);
  if (!is_worth_another_try(code) && moving_.size() > 1) return move_each_alone();
  if (!is_worth_another_try(code)) return tell(std::unexpected(Error{why}));
  wait_for_another_try(why);
}

/// Files that come back must not be lost: after some time only those are given up that can be had
/// in part.
bool FileMover::is_worth_another_try(int exit_code) const {
  if (is_out_of_reach(exit_code)) return true;
  const bool must_come = moving_.front().way == Way::Here && exit_code != kSomeCannotBe;
  return must_come || (exit_code != kNotFound && tries_ < kTriesMax);
}

void FileMover::wait_for_another_try(const std::string& why) {
  if (tries_ == kTriesMax && options_.on_trouble) options_.on_trouble(why);
  timer_ = loop_.after(pause_, [this] {
    timer_.reset();
    go();
  });
  pause_ = std::min(pause_ * 2, kPauseMax);
}

/// Moves each file alone, so that one bad file does not keep back the others.
void FileMover::move_each_alone() {
  for (Move& move : std::views::reverse(moving_)) {
    move.alone = true;
    waiting_.push_front(std::move(move));
  }
  moving_.clear();
  begin();
}

/// The listener may add more files, or forget all.
void FileMover::tell(const Result<void>& done) {
  for (Move& move : std::exchange(moving_, {})) move.done(done);
  begin();
}

}  // namespace trainyard::run
