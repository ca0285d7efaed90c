"""Changes that cannot alter the truth, applied to labelled captures of one end.

`captures` reads them with the truth of each connection, `changes` says what may be changed, `case` draws and judges,
`score` compares verdicts with truths, `report` counts.
"""
