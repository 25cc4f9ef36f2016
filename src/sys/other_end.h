// The other end of a pipe or a socket, of which one wants to know only whether it is still held:
// by a program that lets us know so when it is gone, however it went.
//
// Not for data: what comes is read and forgotten. Any thread.
#pragma once

namespace trainyard::sys {

/// Whether the descriptor has another end: whether it is a pipe or a socket.
bool has_other_end(int descriptor);

/// Whether no process holds the other end any more. Reads the data that has come meanwhile, at most
/// 64 KiB a call. The descriptor must not block.
bool is_other_end_closed(int descriptor);

}  // namespace trainyard::sys
