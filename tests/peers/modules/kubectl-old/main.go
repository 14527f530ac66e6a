// kubectl of an older minor release: its public command tree behind a main of one call.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"

	// Registers the credential plugins kubeconfig files may name.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
)

func main() { os.Exit(cli.Run(cmd.NewDefaultKubectlCommand())) }
