// The code in directories, as git knows it: asked directly, which blocks, or by a dedicated process
// for a run that must not wait for git.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/code.h"
#include "sys/descriptor.h"
#include "sys/packing.h"

namespace trainyard::process {

/// The code in a directory, as find_code() has it from git.
struct FoundCode {
  model::Code code;
  std::string diff;  ///< The changes since its commit: the first MiB.
};

/// Asks git for the code in a directory. Blocks the calling thread, for some seconds at most.
/// Nothing where git is missing, knows of no commit there, or takes too long. Files that git does
/// not know are not looked at, and of what is changed the first 16 MiB.
std::optional<FoundCode> find_code(const std::string& directory);

/// Whether files that git tracks in the work tree differ now from that code; a commit alone changes
/// none. Nothing where git is missing, does not know the commit, or takes too long.
std::optional<bool> has_changed(const model::Code& code);

/// A process that asks git, so that a git that takes long, or a disk that does not respond, delays
/// nothing of the run. One question at a time. Belongs to one thread.
class CodeAsker {
 public:
  /// The maximum number of directories in a question.
  static constexpr std::size_t kDirectoriesMax = 16;

  /// Forks the process. Early: it must not inherit a thread, a database or a socket.
  static Result<CodeAsker> start();

  CodeAsker(CodeAsker&& other) noexcept;
  CodeAsker& operator=(CodeAsker&&) = delete;
  /// The process ends by itself, with the git that it has started, which may take it some seconds.
  /// The destructor does not wait for that.
  ~CodeAsker();

  /// Asks for these, when all before has been answered; each has less than 4 KiB.
  void ask(const std::vector<std::string>& directories);
  /// The answer for each directory, in the order of the question; nothing while the process has not
  /// answered. A diff that it has sent before is left out.
  using Answer = std::vector<std::optional<FoundCode>>;
  std::optional<Answer> hear();
  /// It has died, and answers no more.
  [[nodiscard]] bool is_gone() const { return answers_.broken(); }

  /// Can be read when there may be an answer.
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  [[nodiscard]] std::int64_t pid() const { return pid_; }

 private:
  CodeAsker(std::int64_t pid, sys::Descriptor socket);

  std::int64_t pid_ = 0;
  sys::Descriptor socket_;
  sys::PackedReader answers_;
};

}  // namespace trainyard::process
