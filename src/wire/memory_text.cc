#include "wire/memory_text.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "wire/last_words.h"

namespace trainyard::wire {
namespace {

constexpr std::size_t kLineBytesMax = 600;

/// In small letters, as the lines are when they are compared. python/trainyard/client.py has the
/// same ones.
constexpr std::array<std::string_view, 24> kTexts{
    "cuda out of memory",
    "hip out of memory",
    "cuda error: out of memory",
    "cuda_error_out_of_memory",
    "hip error: out of memory",
    "cudnn_status_alloc_failed",
    "cublas_status_alloc_failed",
    "resource_exhausted",
    "resourceexhaustederror",
    "outofmemoryerror",
    "out of memory while trying to allocate",
    "ran out of memory trying to allocate",
    "out of memory allocating",
    "failed to allocate request for",
    "bytes for new constant",
    "cudamalloc failed: out of memory",
    "cuda failure 'out of memory'",
    "cuda failure 2 'out of memory'",
    "arraymemoryerror",
    "std::bad_alloc",
    "cannot allocate memory",
    "no space left on device: '/dev/shm",
    "unable to write to file </torch_",
    "bus error",
};

bool says_so(std::string_view line) {
  const std::string text = in_small_letters(line);
  const bool known =
      std::ranges::any_of(kTexts, [&text](std::string_view part) { return text.contains(part); });
  // As the last line of a traceback, and not where somebody only speaks of one.
  const bool raised = line.starts_with("MemoryError") || line.ends_with(".MemoryError");
  // TensorFlow's allocator warns of what it can do without.
  if (text.contains("this is not a failure")) return false;
  const bool worker = text.contains("dataloader worker") && text.contains("killed");
  return known || raised || worker;
}

/// TensorFlow's exception does not always say how much it wanted; then its allocator has said so
/// in a line before.
bool leaves_the_amount_out(std::string_view line) {
  const std::string text = in_small_letters(line);
  return text.contains("resourceexhaustederror") && !text.contains("with shape[");
}

bool says_amount_of_tensorflow(std::string_view line) {
  return says_so(line) && in_small_letters(line).contains("ran out of memory trying to allocate");
}

/// A text that a carriage return begins to overwrite is a line as well.
std::optional<std::string_view> last_line_where(std::string_view text,
                                                bool (*holds)(std::string_view)) {
  while (!text.empty()) {
    const std::size_t before = text.find_last_of("\r\n");
    const std::string_view line = before == std::string_view::npos ? text : text.substr(before + 1);
    if (holds(line)) return line;
    if (before == std::string_view::npos) break;
    text = text.substr(0, before);
  }
  return std::nullopt;
}

/// Whether an exception is a mistake of the program or of what it was given, and nothing that lack
/// of memory comes to. Any other may be what a framework makes of it (TensorFlow's "Dst tensor is
/// not initialized" behind a line of its allocator), or a launcher (torchrun's ChildFailedError),
/// or another process (BrokenProcessPool, "Connection closed by peer").
bool is_a_mistake(std::string_view exception) {
  constexpr std::array<std::string_view, 19> kMistakes{
      "AssertionError",     "AttributeError",      "DecodeError",
      "FileExistsError",    "FileNotFoundError",   "FloatingPointError",
      "ImportError",        "IndexError",          "IsADirectoryError",
      "KeyError",           "ModuleNotFoundError", "NameError",
      "NotADirectoryError", "NotImplementedError", "PermissionError",
      "TypeError",          "UnboundLocalError",   "ValueError",
      "ZeroDivisionError"};
  const std::string_view name = exception.substr(0, exception.find(':'));
  return std::ranges::any_of(kMistakes, [name](std::string_view it) { return name.ends_with(it); });
}

/// The part of the text that says what the program failed of. Behind its last traceback, where that
/// is of a mistake, and those that this came from: what it said before, it has survived.
std::string_view why_it_failed(std::string_view text) {
  const std::optional<Traceback> last = last_traceback(text);
  return last && is_a_mistake(last->exception) ? text.substr(last->begin) : text;
}

}  // namespace

bool is_of_gpu(std::string_view line) {
  // Those behind "outofmemoryerror" are what JAX and TensorFlow say where they run on a GPU.
  constexpr std::array<std::string_view, 12> kWords{"cuda",
                                                    "hip",
                                                    "cudnn",
                                                    "cublas",
                                                    "outofmemoryerror",
                                                    "resource_exhausted",
                                                    "resourceexhaustederror",
                                                    "out of memory while trying to allocate",
                                                    "out of memory allocating",
                                                    "failed to allocate request for",
                                                    "bytes for new constant",
                                                    "allocator (gpu_"};
  const std::string text = in_small_letters(line);
  // TensorFlow names the device of what had no room.
  if (text.contains("/device:cpu:")) return false;
  return std::ranges::any_of(kWords, [&text](std::string_view it) { return text.contains(it); });
}

bool is_of_mps(std::string_view text) {
  // As CUDA's runtime and driver have them.
  constexpr std::array<std::string_view, 4> kMpsWords{"MPS server", "MPS client", "cudaErrorMps",
                                                      "CUDA_ERROR_MPS_"};
  return std::ranges::any_of(kMpsWords, [text](std::string_view it) { return text.contains(it); });
}

std::optional<std::string> out_of_memory_line(std::string_view text) {
  std::optional<std::string_view> line = last_line_where(why_it_failed(text), says_so);
  if (!line) return std::nullopt;
  if (leaves_the_amount_out(*line)) {
    const std::string_view before =
        text.substr(0, static_cast<std::size_t>(line->data() - text.data()));
    line = last_line_where(before, says_amount_of_tensorflow).value_or(*line);
  }
  return std::string(utf8_prefix(*line, kLineBytesMax));
}

}  // namespace trainyard::wire
