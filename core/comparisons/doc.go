// Package comparisons plays scenarios under several policies for callers of the API. It never
// plays in the process of the server: Queue starts a process for each comparison, which
// limits its memory and its processor time, and runs with the lowest priority.
//
// One comparison is played at a time, and one may wait. Finished ones are kept in memory,
// the newest first, up to a number and a size. They belong to this server, and end with it.
//
// Queue is safe for concurrent use. Its process calls Serve with a function that plays.
package comparisons
