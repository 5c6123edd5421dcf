// Package kubectl holds cede kubectl, the plugin kubectl cede: it reads a running cluster
// through the kubeconfig of the user and predicts or explains evictions. It imports the
// cluster as cede sim import does, and answers as cede compare does; it writes nothing.
package kubectl
