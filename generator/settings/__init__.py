"""What a site sets of its engine, in normal form: one meaning, however and wherever it is written.

Everything else asks this form. Only rules about spelling itself see what was written.
"""
