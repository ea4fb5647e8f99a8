"""What the pages are made of. Only this package and `pages/` import streamlit."""
