// What is wrong in a file that a person wrote, and where. All mistakes of a file are told at once.
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
  std::size_t stands_for = 1;  ///< How many mistakes it tells of: "and 500 more mistakes".
  bool of_machine = false;     ///< The text is right, and this machine has not what it asks for.
  bool lacks_gpu = false;      ///< What the machine has not are the GPUs.

  friend bool operator==(const Mistake&, const Mistake&) = default;
};

using Mistakes = std::vector<Mistake>;

/// "sweep.yaml:12:5: group 'train': unknown key 'max-paralel' (did you mean 'max-parallel'?)" One
/// line that is safe to show: what acts on a terminal is escaped.
std::string to_text(const Mistake& mistake);

/// How many mistakes they tell of.
std::size_t count(const Mistakes& mistakes);

/// Gathers mistakes while files are read. Keeps a bounded number, so that a file that is wrong a
/// million times costs no more than one that is wrong a thousand times.
class MistakeList {
 public:
  static constexpr std::size_t kKeptMax = 10'000;
  static constexpr std::size_t kShownMax = 100;

  void add(Mistake mistake);
  void add(const Mistakes& mistakes);

  [[nodiscard]] bool empty() const { return mistakes_.empty(); }

  /// How many so far, the ones that were not kept too.
  [[nodiscard]] std::size_t count() const { return mistakes_.size() + dropped_; }

  /// The first kShownMax in the order of their places, each once, file by file in the order in
  /// which the files were first complained about. When there are more, a last one says how many.
  [[nodiscard]] Mistakes take() &&;

 private:
  Mistakes mistakes_;
  std::size_t dropped_ = 0;
};

}  // namespace trainyard::text
