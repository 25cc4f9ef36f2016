// A mistake in a file that a person wrote, and its place. All mistakes of a file are reported at
// once.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace trainyard::text {

struct Mistake {
  std::string file;
  int line = 0;    ///< From 1; 0 when it is about the whole file.
  int column = 0;  ///< From 1.
  std::string message;
  std::size_t stands_for = 1;  ///< The number of mistakes that it reports: "and 500 more mistakes".
  bool of_machine = false;     ///< The text is right, but this machine is short of a resource.
  bool lacks_gpu = false;      ///< The machine has too few GPUs.

  friend bool operator==(const Mistake&, const Mistake&) = default;
};

using Mistakes = std::vector<Mistake>;

/// "sweep.yaml:12:5: group 'train': unknown key 'max-paralel' (did you mean 'max-parallel'?)" One
/// line that is safe to show: characters that act on a terminal are escaped.
std::string to_text(const Mistake& mistake);

/// The number of mistakes that they report.
std::size_t count(const Mistakes& mistakes);

/// Gathers mistakes while files are read. Keeps a bounded number, so that a file with a million
/// mistakes costs no more than a file with a thousand.
class MistakeList {
 public:
  static constexpr std::size_t kKeptMax = 10'000;
  static constexpr std::size_t kShownMax = 100;

  void add(Mistake mistake);
  void add(const Mistakes& mistakes);

  [[nodiscard]] bool empty() const { return mistakes_.empty(); }

  /// The number of mistakes so far, including those that were not kept.
  [[nodiscard]] std::size_t count() const { return mistakes_.size() + dropped_; }

  /// The first kShownMax in the order of their places, each once, file by file in the order in
  /// which the files were first complained about. When there are more, a last one says how many.
  [[nodiscard]] Mistakes take() &&;

 private:
  Mistakes mistakes_;
  std::size_t dropped_ = 0;
};

}  // namespace trainyard::text
