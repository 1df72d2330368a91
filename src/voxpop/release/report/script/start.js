startTheme();
startPrinting();
drawCharts();
drawSessions();
unpack().then((tree) => {
  const rows = new Rows(tree);
  const explorer = new Explorer(rows);
  const print = () => printRows(rows.text, explorer.found.nodes);
  addEventListener("beforeprint", print);
  print();
  if (byId("completer")) {
    const completions = new Completions(new Completer(tree, FACTS.grams.reading));
    byId("complete-one").addEventListener("click", () => completions.begin(`${rows.text[explorer.node]} `));
  }
  document.documentElement.dataset.ready = "yes";
}, () => {
  const sorry = "The list cannot be shown: this browser is too old to unpack it. It is in release.parquet beside this page.";
  byId("explorer").append(element("p", "alarm", sorry));
});
