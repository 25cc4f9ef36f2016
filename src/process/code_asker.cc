#include "process/code_asker.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <expected>
#include <set>
#include <string_view>

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/fingerprint.h"
#include "base/time.h"
#include "sys/fork.h"
#include "sys/helper_command.h"
#include "sys/passing.h"
#include "sys/pidfd.h"

namespace trainyard::process {
namespace {

constexpr Bytes kLookedAtMax = mib(16);
constexpr std::size_t kDiffMax = std::size_t{1} << 20;
constexpr Duration kDeadline{5'000};

std::optional<std::string> git(std::vector<std::string> words, const std::string& directory) {
  // Git must not start a process that watches files, nor create lock files in the directory.
  std::vector<std::string> arguments{"git", "-c", "core.fsmonitor=false", "--no-optional-locks"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  Result<sys::HelperOutput> output = sys::run_helper({.arguments = std::move(arguments),
                                                      .directory = directory,
                                                      .output_max = kLookedAtMax,
                                                      .deadline = kDeadline});
  // A diff that is too long is ended, and the first of it is kept.
  if (!output || (output->exit_code != 0 && !output->cut)) return std::nullopt;
  return std::move(output->text);
}

/// The difference between a commit and the work tree in the directory. Git makes the diff itself:
/// a configured diff or textconv program may print anything, start programs and wait for input.
std::optional<std::string> diff_from(const std::string& commit, const std::string& directory) {
  return git({"diff", "--no-ext-diff", "--no-textconv", "--no-color", commit, "--"}, directory);
}

/// The value of Code::changes for a diff: its fingerprint, or empty for an empty diff.
std::string hash_of(const std::string& diff) {
  if (diff.empty()) return {};
  Fingerprint changes;
  changes.add(diff);
  return fmt::format("{:016x}", changes.value());
}

constexpr std::size_t kQuestionMax = std::size_t{128} << 10;
constexpr std::size_t kAnswerMax = std::size_t{20} << 20;
/// The number of codes whose diffs it remembers having sent; a diff beyond these is sent again.
constexpr std::size_t kToldMax = 1'000;
/// After this time the directories left in a question are answered with "not known".
constexpr std::chrono::seconds kQuestionTakesMax{20};

std::string answer_to(std::string_view question, std::set<model::Code>& told) {
  const auto end = std::chrono::steady_clock::now() + kQuestionTakesMax;
  sys::Unpacking directories(question);
  sys::Packing answer;
  const auto count = directories.number<std::uint32_t>();
  answer.add(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string directory = directories.text();
    const bool late = std::chrono::steady_clock::now() >= end;
    const std::optional<FoundCode> found = late ? std::nullopt : find_code(directory);
    answer.add(found.has_value());
    if (!found) continue;
    if (told.size() >= kToldMax) told.clear();
    const bool is_new = told.insert(found->code).second;
    answer.add(found->code.root);
    answer.add(found->code.commit);
    answer.add(found->code.changes);
    answer.add(is_new ? std::string_view(found->diff) : std::string_view());
  }
  return std::move(answer).take();
}

/// The whole life of the process. It exits when the other end of its socket is closed, and is not
/// killed, because the git that it waits for would go on.
[[noreturn]] void become_code_asker(int socket) {
  if (!sys::become_alone({.socket = socket, .name = "trainyard-code", .ends_with_parent = false})) {
    ::_exit(0);
  }
  sys::PackedReader questions(kQuestionMax);
  std::set<model::Code> told;
  while (true) {
    questions.wait_and_read(sys::kLoneSocket);
    const std::optional<std::string> question = questions.next();
    if (!question && questions.broken()) ::_exit(0);
    if (question && !sys::send_packed(sys::kLoneSocket, answer_to(*question, told))) ::_exit(0);
  }
}

}  // namespace

std::optional<FoundCode> find_code(const std::string& directory) {
  const std::optional<std::string> place = git({"rev-parse", "--show-toplevel", "HEAD"}, directory);
  if (!place || !place->ends_with('\n')) return std::nullopt;
  const std::string lines = place->substr(0, place->size() - 1);
  const std::size_t end_of_root = lines.rfind('\n');
  if (end_of_root == std::string::npos) return std::nullopt;
  std::optional<std::string> diff = diff_from("HEAD", directory);
  if (!diff) return std::nullopt;
  FoundCode found{.code = {.root = lines.substr(0, end_of_root),
                           .commit = lines.substr(end_of_root + 1),
                           .changes = hash_of(*diff)},
                  .diff = {}};
  diff->resize(std::min(diff->size(), kDiffMax));
  found.diff = std::move(*diff);
  return found;
}

std::optional<bool> has_changed(const model::Code& code) {
  const std::optional<std::string> diff = diff_from(code.commit, code.root);
  if (!diff) return std::nullopt;
  return hash_of(*diff) != code.changes;
}

Result<CodeAsker> CodeAsker::start() {
  auto ends = sys::socket_pair();
  if (!ends) return std::unexpected(std::move(ends.error()).in("cannot look at the code"));
  const pid_t pid = ::fork();
  if (pid < 0) return std::unexpected(sys::system_error("cannot look at the code", errno));
  if (pid == 0) become_code_asker(ends->second.get());
  return CodeAsker(pid, std::move(ends->first));
}

CodeAsker::CodeAsker(std::int64_t pid, sys::Descriptor socket)
    : pid_(pid), socket_(std::move(socket)), answers_(kAnswerMax) {}

CodeAsker::CodeAsker(CodeAsker&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      socket_(std::move(other.socket_)),
      answers_(std::move(other.answers_)) {}

CodeAsker::~CodeAsker() {
  constexpr Duration kEndsWithin{200};
  if (pid_ == 0) return;
  socket_.close();
  sys::wait_until_ended(sys::open_pidfd(pid_), kEndsWithin);
  ::waitpid(static_cast<pid_t>(pid_), nullptr, WNOHANG);
}

void CodeAsker::ask(const std::vector<std::string>& directories) {
  check(directories.size() <= kDirectoriesMax, "no more directories than may be asked for at once");
  sys::Packing question;
  question.add(static_cast<std::uint32_t>(directories.size()));
  for (const std::string& directory : directories) question.add(directory);
  // The process reads, since it has answered everything before. If it has died, the socket reports
  // that.
  static_cast<void>(sys::send_packed(socket_.get(), std::move(question).take()));
}

std::optional<CodeAsker::Answer> CodeAsker::hear() {
  answers_.read(socket_.get());
  const std::optional<std::string> piece = answers_.next();
  if (!piece) return std::nullopt;
  sys::Unpacking packed(*piece);
  Answer answer;
  const auto count = packed.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && i < kDirectoriesMax; ++i) {
    std::optional<FoundCode>& found = answer.emplace_back();
    if (!packed.number<bool>()) continue;
    found.emplace();
    found->code.root = packed.text();
    found->code.commit = packed.text();
    found->code.changes = packed.text();
    found->diff = packed.text();
  }
  return answer;
}

}  // namespace trainyard::process
