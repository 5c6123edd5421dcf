package codec

import "encoding/hex"

const uuidLen = 36

// parseUUID parses a UUID in the form that formatUUID returns, and reports whether
// the string is one. Other spellings are not UUIDs: they must be decoded as they
// were encoded.
func parseUUID(s string, into *[16]byte) bool {
	if len(s) != uuidLen || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	at := 0
	for i := range into {
		if s[at] == '-' {
			at++
		}
		high, low := hexDigit(s[at]), hexDigit(s[at+1])
		if high|low > 15 {
			return false
		}
		into[i] = high<<4 | low
		at += 2
	}
	return true
}

// hexDigit returns the value of a lower-case hexadecimal digit, or 255.
func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}

// formatUUID is the inverse of parseUUID; raw has 16 bytes.
func formatUUID(raw []byte) string {
	var b [uuidLen]byte
	hex.Encode(b[:8], raw[:4])
	b[8] = '-'
	hex.Encode(b[9:13], raw[4:6])
	b[13] = '-'
	hex.Encode(b[14:18], raw[6:8])
	b[18] = '-'
	hex.Encode(b[19:23], raw[8:10])
	b[23] = '-'
	hex.Encode(b[24:], raw[10:])
	return string(b[:])
}
