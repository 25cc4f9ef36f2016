#include "process/end_reader.h"

#include <array>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "base/result.h"
#include "process/end_notes.h"
#include "sys/clock.h"
#include "sys/event_loop.h"
#include "sys/files.h"
#include "sys/open_file.h"
#include "sys/passing.h"
#include "sys/tail.h"
#include "sys/terminal.h"
#include "wire/memory_text.h"
#include "wire/result_text.h"

namespace trainyard::process {
namespace {

/// The maximum number of processes that do not exit.
constexpr std::size_t kLeftMax = 16;
constexpr std::size_t kPieceMax = wire::kResultBytesMax + wire::kErrorTailBytes + 4096;

void write_at_end(const std::string& path, std::string_view below, std::string_view text) {
  const auto opened = sys::open_file(path, {.flags = O_WRONLY | O_APPEND, .below = below});
  if (!opened) return;
  // The text that the task wrote itself is kept in any case.
  static_cast<void>(sys::write_text(opened->descriptor.get(), text));
}

std::string end_of_log(const std::string& path, std::string_view below) {
  return sys::read_end_of_file(path, wire::kErrorTailBytes, sys::Links::Refuse, below)
      .value_or(std::string());
}

/// The end of what an attempt printed, and the log that it is from.
struct Printed {
  std::string text;
  std::string path;
  bool is_output = false;
};

Printed read_printed(const EndReader::Question& question) {
  const std::string& below = question.followed_directory;
  Printed printed{.text = end_of_log(question.errors_path, below), .path = question.errors_path};
  if (!printed.text.empty() || question.output_path.empty()) return printed;
  // A program whose errors go to its standard output, as with 2>&1. Most of an output is not about
  // its end, so that only the last lines count.
  const std::string output = end_of_log(question.output_path, below);
  return {.text = std::string(sys::last_lines(output, wire::kOutputTailLines)),
          .path = question.output_path,
          .is_output = true};
}

void tell_of_rank(const EndReader::Question& question, const Printed& printed) {
  constexpr std::size_t kLines = 10;
  std::string text = fmt::format("trainyard ranks: {}\n", question.told);
  if (question.told_path != printed.path && !printed.text.empty()) {
    const std::size_t name = printed.path.rfind('/') + 1;
    text += fmt::format("trainyard ranks: the end of {}:\n{}",
                        std::string_view(printed.path).substr(name),
                        sys::last_lines(printed.text, kLines));
    if (!text.ends_with('\n')) text += '\n';
  }
  write_at_end(question.told_path, question.followed_directory, text);
}

std::optional<Duration> when_written(const std::string& path) {
  struct stat about{};
  if (::lstat(path.c_str(), &about) != 0) return std::nullopt;
  const auto since_1970 =
      std::chrono::seconds(about.st_mtim.tv_sec) + std::chrono::nanoseconds(about.st_mtim.tv_nsec);
  const Duration ago(sys::unix_milliseconds() -
                     std::chrono::duration_cast<Duration>(since_1970).count());
  return sys::EventLoop::now() - ago;
}

/// Whether the directory has an entry from before this time. It may be a link, as to a larger disk.
bool has_entry_from_before(Duration started, const std::filesystem::path& directory,
                           std::string_view below) {
  const auto above = sys::open_directory(directory.parent_path().string(), below);
  if (!above) return false;
  std::error_code error;
  std::filesystem::directory_iterator entry(
      fmt::format("/proc/self/fd/{}/{}", above->get(), directory.filename().string()), error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (when_written(entry->path().string()).value_or(started) < started) return true;
  }
  return false;
}

/// Reads the files that the attempt has left, and writes what is to be in its log.
void read_files(const EndReader::Question& question, EndReader::Answer& answer) {
  LeftBehind& left = answer.left;
  Result<std::optional<std::string>> result;
  if (!question.result_path.empty()) {
    result = sys::read_plain_file(question.result_path,
                                  Bytes{static_cast<std::int64_t>(wire::kResultBytesMax)},
                                  sys::Links::Refuse, question.followed_directory);
  }
  if (!result) {
    left.trouble = std::move(result.error().message);
  } else {
    left.result = std::move(*result);
  }
  if (left.result) {
    answer.written_at = when_written(question.result_path);
    // The result counts, and is in the journal, whether there is room for the copy or not.
    if (!question.result_copy_path.empty()) {
      static_cast<void>(
          sys::replace_file(question.result_copy_path, *left.result, question.followed_directory));
    }
  }
  Printed printed;
  if (!question.errors_path.empty()) printed = read_printed(question);
  if (!question.told.empty()) tell_of_rank(question, printed);
  left.errors = std::move(printed.text);
  left.errors_are_output = printed.is_output;
  if (!question.errors_path.empty()) {
    left.has_checkpoint = has_entry_from_before(question.started, question.checkpoint_directory,
                                                question.followed_directory);
  }
}

/// The members of a question that are text, in the order in which they are sent.
constexpr std::array kQuestionTexts{&EndReader::Question::result_path,
                                    &EndReader::Question::result_copy_path,
                                    &EndReader::Question::errors_path,
                                    &EndReader::Question::output_path,
                                    &EndReader::Question::checkpoint_directory,
                                    &EndReader::Question::told,
                                    &EndReader::Question::told_path,
                                    &EndReader::Question::note,
                                    &EndReader::Question::note_path,
                                    &EndReader::Question::followed_directory};

}  // namespace

EndReader::Question EndReader::Question::of(const model::Launch& launch) {
  Question question;
  question.result_path = launch.result_path;
  question.result_copy_path = launch.result_copy_path;
  question.errors_path = launch.stderr_path;
  question.output_path = launch.stdout_path;
  question.checkpoint_directory = launch.checkpoint_directory;
  question.started = sys::EventLoop::now();
  question.told_path = launch.stderr_path;
  question.followed_directory = launch.followed_directory();
  return question;
}

void append_question(sys::Packing& packing, const EndReader::Question& question) {
  for (const auto text : kQuestionTexts) packing.add(question.*text);
  packing.add(question.started.count());
}

EndReader::Question question_from(sys::Unpacking& packed) {
  EndReader::Question question;
  for (const auto text : kQuestionTexts) question.*text = packed.text();
  question.started = Duration(packed.number<std::int64_t>());
  return question;
}

EndReader::Answer EndReader::read(const Question& question) {
  EndReader::Answer answer;
  // The task may have closed its directory, in which all of these files are, or one above it.
  const std::string& file =
      question.result_path.empty() ? question.errors_path : question.result_path;
  sys::restore_access(file.substr(0, file.rfind('/')), question.followed_directory);
  read_files(question, answer);
  if (!question.note.empty()) {
    answer.is_noted = add_end_note(question.note_path, end_note_record(question.note, answer.left));
  } else if (!question.note_path.empty()) {
    ::unlink(question.note_path.c_str());
  }
  return answer;
}

namespace {

std::string pack(const EndReader::Answer& answer) {
  const LeftBehind& left = answer.left;
  sys::Packing packing;
  packing.add(left.result.has_value());
  packing.add(left.result.value_or(std::string()));
  packing.add(left.trouble);
  packing.add(left.errors);
  packing.add(left.errors_are_output);
  packing.add(left.has_checkpoint);
  packing.add(answer.written_at.has_value());
  packing.add(answer.written_at.value_or(Duration{0}).count());
  packing.add(answer.is_noted);
  return std::move(packing).take();
}

EndReader::Answer unpack(std::string_view piece) {
  sys::Unpacking packed(piece);
  const bool has_result = packed.number<bool>();
  std::string result = packed.text();
  EndReader::Answer answer{.left = {.result = {},
                                    .trouble = packed.text(),
                                    .errors = packed.text(),
                                    .errors_are_output = packed.number<bool>(),
                                    .has_checkpoint = packed.number<bool>()},
                           .written_at = {}};
  if (has_result) answer.left.result = std::move(result);
  const bool has_time = packed.number<bool>();
  const Duration written_at(packed.number<std::int64_t>());
  if (has_time) answer.written_at = written_at;
  answer.is_noted = packed.number<bool>();
  return answer;
}

/// The whole life of the process.
void answer_questions(int socket) {
  sys::PackedReader questions(kPieceMax);
  bool has_noted = false;
  for (;;) {
    questions.wait_and_read(socket);
    const std::optional<std::string> piece = questions.next();
    if (!piece && questions.broken()) return;
    if (!piece) continue;
    sys::Unpacking packed(*piece);
    const EndReader::Question question = question_from(packed);
    // The process before this one may have been killed in the middle of a note.
    if (!question.note.empty() && !std::exchange(has_noted, true)) {
      cut_incomplete_end_note(question.note_path);
    }
    if (!sys::send_packed(socket, pack(EndReader::read(question)))) return;
  }
}

/// The process keeps only its socket of what the keeper has open, and ends with the keeper.
[[noreturn]] void become_reader(int socket, pid_t keeper) {
  constexpr int kSocket = 3;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != keeper) ::_exit(0);
  ::prctl(PR_SET_NAME, "trainyard-read");
  ::setsid();
  if (socket != kSocket) ::dup2(socket, kSocket);
  ::close_range(kSocket + 1, ~0U, 0);
  answer_questions(kSocket);
  ::_exit(0);
}

}  // namespace

EndReader::~EndReader() {
  if (pid_ != 0) ::kill(pid_, SIGKILL);
}

bool EndReader::start() {
  auto ends = sys::socket_pair();
  if (!ends) return false;
  const pid_t keeper = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return false;
  if (pid == 0) become_reader(ends->second.get(), keeper);
  pid_ = pid;
  socket_ = std::move(ends->first);
  answers_ = sys::PackedReader(kPieceMax);
  busy_ = false;
  options_.session(pid_, true);
  const bool watched = options_.watch(socket_);
  if (!watched) leave();
  return watched;
}

void EndReader::ask(Question question, std::move_only_function<void(Answer)> answer) {
  // Most commands leave no result, and then no process has to be woken to report that.
  if (question.note_path.empty() && question.errors_path.empty() &&
      sys::is_known_to_be_absent(question.result_path)) {
    return answer({});
  }
  waiting_.push_back({.question = std::move(question), .answer = std::move(answer)});
  ask_next();
}

void EndReader::ask_next() {
  if (busy_) return;
  while (!waiting_.empty() && options_.has_room()) {
    if (pid_ == 0 && (left_.size() >= kLeftMax || !start())) {
      give_up_first("no process can be started to read it");
      continue;
    }
    sys::Packing piece;
    append_question(piece, waiting_.front().question);
    // The socket reports whether the process is still there.
    static_cast<void>(sys::send_packed(socket_.get(), std::move(piece).take()));
    busy_ = true;
    until_ = Clock::now() + answer_max_;
    return;
  }
}

void EndReader::about() {
  if (pid_ == 0) return;  // It was left a moment ago.
  answers_.read(socket_.get());
  if (const std::optional<std::string> piece = answers_.next()) {
    busy_ = false;
    answer_max_ = options_.answer_max;
    Asked first = std::move(waiting_.front());
    waiting_.pop_front();
    first.answer(unpack(*piece));
    ask_next();
  }
  if (answers_.broken()) has_died();
}

/// The process is of no use any more. It may take its time to end: as long as the disk does.
void EndReader::leave() {
  socket_.close();
  ::kill(pid_, SIGKILL);
  left_.push_back(std::exchange(pid_, 0));
  busy_ = false;
  reap();
}

void EndReader::reap() {
  std::erase_if(left_, [this](pid_t pid) {
    if (::waitpid(pid, nullptr, WNOHANG) == 0) return false;
    options_.session(pid, false);
    return true;
  });
}

void EndReader::has_died() {
  const bool was_busy = busy_;
  leave();
  if (was_busy && ++waiting_.front().tries >= kTriesMax) {
    give_up_first("the process that reads it was killed");
  }
  ask_next();
}

void EndReader::look_at_the_clock(Clock::time_point now) {
  reap();
  if (busy_ && now >= until_) about();
  if (busy_ && now >= until_) {
    // The files of later questions may be on a disk that responds.
    leave();
    const Duration waited = std::exchange(answer_max_, kNextAnswerMax);
    give_up_first(fmt::format("its disk has not answered for {}", to_text(waited)));
  }
  ask_next();
}

std::optional<EndReader::Clock::time_point> EndReader::wake_at() const {
  if (!busy_) return std::nullopt;
  return until_;
}

void EndReader::give_up_first(const std::string& why) {
  Asked asked = std::move(waiting_.front());
  waiting_.pop_front();
  asked.answer(
      {.left = {.result = {},
                .trouble = fmt::format("cannot read '{}': {}", asked.question.result_path, why),
                .errors = {}},
       .written_at = {}});
}

}  // namespace trainyard::process
