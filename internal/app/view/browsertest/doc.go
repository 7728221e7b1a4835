// Package browsertest tests the page of package view in a browser. It is a
// separate module, so that attn does not depend on the browser driver.
package browsertest
