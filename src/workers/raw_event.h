// An event as it can leave the machine: buffers that lie in memory that others can map are put into
// the frame. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/frame.h"

namespace trainyard::workers {

using SharedBytes = std::function<Result<std::span<const std::byte>>(const wire::SharedBuffer&)>;

/// `frame` is a whole event with this prefix. An error: its buffers have more than
/// wire::kEventBuffersBytesMax together, or it is not what it says.
Result<std::string> raw_event(const wire::FramePrefix& prefix, std::string_view frame,
                              const SharedBytes& bytes_of);

}  // namespace trainyard::workers
