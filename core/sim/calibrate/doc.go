// Package calibrate measures how close the replay of a recording is to the recording: the
// durations of instances, the times that they took to stop, and the delays of their starts,
// paired by instance. It also sets the durations and kill timeouts of a scenario to recorded
// ones. It plays nothing itself: Lives collects the timeline of a run, and Read that of a
// recording, in the columns of the table timeline of package dataset.
//
// `cede sim calibrate` calls it. docs/adr/0089-fidelity-of-replays.md defines the measures.
// A Lives belongs to one goroutine.
package calibrate
