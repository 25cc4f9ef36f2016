// What is wrong in a file that a person wrote, and where. All mistakes of a file are told at once.
#pragma once

#include <string>
#include <vector>

namespace trainyard {

struct Mistake {
  std::string file;
  int line = 0;    ///< From 1; 0 when it is about the whole file.
  int column = 0;  ///< From 1.
  std::string message;

  friend bool operator==(const Mistake&, const Mistake&) = default;
};

using Mistakes = std::vector<Mistake>;

/// "sweep.yaml:12:5: group 'train': unknown key 'max-paralel', did you mean 'max-parallel'?"
std::string to_text(const Mistake& mistake);

}  // namespace trainyard
