// Package rest holds the parts of an HTTP API that are independent of its resources:
// errors with a code and a hint, strict decoding of JSON bodies with the location of
// every problem, a rate limiter per client, and a response recorder with a deadline
// for each piece that is written.
//
// core/api calls it. A RateLimiter is safe for concurrent use; a Recorder belongs to
// one request.
package rest
