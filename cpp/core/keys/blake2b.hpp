// BLAKE2b with a digest of 16 bytes and a personalisation (RFC 7693 and the BLAKE2 parameter block).
#pragma once
#include <cstddef>
#include <cstdint>

namespace ellipsum {

// The two words of the digest of `size` bytes; `person`: two words of the parameter block.
void blake2b_128(const unsigned char* data, std::size_t size, const std::uint64_t person[2],
                 std::uint64_t digest[2]);

}  // namespace ellipsum
