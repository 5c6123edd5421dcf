// Package tune holds cede policy tune: it searches the settings of a policy, or a grammar of
// rules, on generated workloads, and writes the best policy as a folder with a report.
// core/tune makes the search; this package plays, stores and reports.
package tune
