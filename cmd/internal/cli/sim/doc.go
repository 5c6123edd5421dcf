// Package sim holds the cede sim commands: play, generate, import, record and replay
// scenarios. Package core/sim plays them.
package sim
