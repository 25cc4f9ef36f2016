// Who is told how a run goes: by webhooks, by mail, by the command of `on-finish`. What nobody
// asked for costs nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "job/jobs.h"
#include "model/turn.h"
#include "tell/notice.h"
#include "tell/run_watch.h"
#include "tell/teller.h"

namespace trainyard::cli {

class Telling {
 public:
  /// Forks the process that tells others, where somebody is to be told: before there are databases,
  /// sockets and threads. `jobs` must outlive it; the first of them says who is told.
  explicit Telling(const job::Jobs& jobs);

  /// What people should know before the run begins: who is not told, and why.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  /// The run has begun.
  void begin(std::optional<std::uint32_t> number);
  /// Every turn; lines for people, of what could not be told.
  std::vector<std::string> see(const model::Turn& turn);
  /// The run has ended, and that is what `trainyard run` will end with: changes nothing about it.
  /// Waits for the command of `on-finish`, a minute at most, and some seconds for those who are
  /// told; says so on standard error.
  void end(ExitCode code);

 private:
  void start_teller();
  void warn_of_password();
  [[nodiscard]] std::string json_of(const tell::Occasion& occasion) const;
  void post(const std::string& what, const tell::Occasion& occasion);

  const job::Jobs& jobs_;
  tell::RunName run_;
  std::vector<std::string> notes_;
  std::optional<tell::Teller> teller_;
  tell::RunWatch watch_;
};

}  // namespace trainyard::cli
