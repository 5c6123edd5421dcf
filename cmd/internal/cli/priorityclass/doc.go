// Package priorityclass holds the cede priority-class commands and reads files of
// priority classes.
package priorityclass
