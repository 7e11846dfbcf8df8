"""Random programs that mix levels and styles, judged by a truth that knows nothing of levels.

``truth.py`` is the truth, ``ledger.py`` counts which derivatives fit the levels, ``program.py`` makes programs, ``compiled.py`` compiles
parts of their text, ``run.py`` runs many and counts; ``python tests/levels/fuzz/run.py --help`` tells how to run, show and shrink one.
"""
