// A program whose standard input and output are one stream that we hold the other end of, and what
// it says on standard error: `ssh lab1 ...`.
//
// It is in a session of its own, so that Ctrl-C is not for it, and has no terminal to ask anybody
// on. When we are gone, however that came, it is asked to end (SIGTERM). Not for tasks: those are
// the keeper's. While there is one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "sys/descriptor.h"

namespace trainyard::sys {

class StreamProgram {
 public:
  /// `arguments` begin with the program, which is looked up on PATH. That it cannot be run it says
  /// as a shell does: by its exit code 127, and on standard error.
  static Result<StreamProgram> start(const std::vector<std::string>& arguments);

  StreamProgram(StreamProgram&&) noexcept = default;
  StreamProgram& operator=(StreamProgram&&) = delete;
  /// Kills the program and its process group where it has not ended, and waits for the program.
  ~StreamProgram();

  /// Our end of the stream; once.
  [[nodiscard]] Descriptor take_stream() { return std::move(stream_); }

  /// Asks it to end, as SIGTERM does.
  void terminate() const;

  /// The last it has said on standard error, at most 4 kB; nothing of it waits.
  [[nodiscard]] std::string last_errors();

  /// Its exit code, as in a shell, waiting at most `patience` for it; nothing: it has not ended.
  [[nodiscard]] std::optional<int> exit_code(Duration patience = Duration{0});

 private:
  StreamProgram(std::int64_t pid, Descriptor stream, Descriptor errors)
      : pid_(pid), stream_(std::move(stream)), errors_(std::move(errors)) {}

  std::int64_t pid_ = 0;  ///< 0: it has ended, and has been waited for.
  Descriptor stream_;
  Descriptor errors_;
  std::string said_;
  std::optional<int> exit_code_;
};

}  // namespace trainyard::sys
