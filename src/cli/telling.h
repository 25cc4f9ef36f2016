// News about a run: by webhooks, by mail, by the command of `on-finish`. Costs nothing unless it is
// configured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "job/jobs.h"
#include "model/turn.h"
#include "sys/descriptor.h"
#include "tell/notice.h"
#include "tell/run_watch.h"
#include "tell/teller.h"

namespace trainyard::cli {

class Telling {
 public:
  /// Forks the process that notifies, if there is a recipient: before there are databases, sockets
  /// and threads. `jobs` must outlive it; the first of them names the recipients.
  explicit Telling(const job::Jobs& jobs);

  /// Notes for people before the run begins: the recipients that are not notified, and the reasons.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  /// The run has begun.
  void begin(std::optional<std::uint32_t> number);
  /// Called every turn; returns lines for people about failed notifications.
  std::vector<std::string> see(const model::Turn& turn);
  /// The run has ended with this exit code of `trainyard run`, which does not change. Waits for the
  /// command of `on-finish`, a minute at most, and some seconds for notifications; says so on
  /// standard error.
  void end(ExitCode code);

 private:
  void start_teller();
  void warn_of_password();
  [[nodiscard]] std::string json_of(const tell::Occasion& occasion) const;
  void post(const std::string& what, const tell::Occasion& occasion);

  const job::Jobs& jobs_;
  tell::RunName run_;
  sys::Descriptor directory_;  ///< For `on-finish`: that of the run, wherever a task moves it.
  std::vector<std::string> notes_;
  std::optional<tell::Teller> teller_;
  tell::RunWatch watch_;
};

}  // namespace trainyard::cli
